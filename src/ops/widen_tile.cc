#include "ops/widen_tile.h"

#include <array>

namespace godwit::ops {
namespace {

// The table of the 4-bit codes. Keys are stored as k + 128, unsigned.
constexpr std::array<uint8_t, 16> TableWith(int excess) {
  std::array<uint8_t, 16> table{};
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<uint8_t>(kernels::kNibbleLevels[i] + excess);
  }
  return table;
}
constexpr std::array<uint8_t, 16> kKeyTable = TableWith(128), kValueTable = TableWith(0);

const void* Widened(const kernels::KernelTable& kernels, const std::byte* nibbles,
                    int64_t widened_bytes, const std::array<uint8_t, 16>& table, void* memory) {
  kernels.widen_nibbles({.nibbles = reinterpret_cast<const uint8_t*>(nibbles),
                         .bytes = widened_bytes / 2,
                         .table = table.data(),
                         .out = static_cast<uint8_t*>(memory)});
  return memory;
}

}  // namespace

const void* WidenedKeys(const kernels::KernelTable& kernels, const KvView& kv, int64_t head_dim,
                        int64_t head, int64_t tile, void* memory) {
  if (!kv.narrow_keys) return kv.Keys(head, tile);
  return Widened(kernels, kv.Keys(head, tile), WidenedKeyBytes(head_dim), kKeyTable, memory);
}

const void* WidenedValues(const kernels::KernelTable& kernels, const KvView& kv, int64_t value_dim,
                          int64_t head, int64_t tile, void* memory) {
  if (!kv.narrow_values) return kv.Values(head, tile);
  return Widened(kernels, kv.Values(head, tile), WidenedValueBytes(value_dim), kValueTable, memory);
}

}  // namespace godwit::ops
