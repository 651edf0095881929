// Attention over one tile of keys and values on one core, by the number of query rows that share
// it. The tile comes from the cache, or is streamed as in decode: head by head through the pages of
// a long context.
//
//   build/bench/bench/kernel_benchmark --benchmark_filter='attention/bf16/head_dim:64/'

#include <benchmark/benchmark.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernels/dispatch.h"
#include "tensor/buffer.h"

namespace godwit::bench {
namespace {

using kernels::kTileTokens;

struct Type {
  const char* name;
  int64_t bytes;  // of an element
  void (*kernels::KernelTable::*attend)(const kernels::AttendTileArgs&) noexcept;
};
constexpr Type kTypes[] = {{"f16", 2, &kernels::KernelTable::attend_tile_f16},
                           {"bf16", 2, &kernels::KernelTable::attend_tile_bf16},
                           {"int8", 1, &kernels::KernelTable::attend_tile_i8},
                           {"int8-products", 1, &kernels::KernelTable::attend_tile_i8_i8}};
constexpr int64_t kHeadDims[] = {64, 128};
constexpr int64_t kRows[] = {1, 4, 8, 60};  // query heads of a group; a block of a prompt

struct Case {
  Type type;
  int64_t head_dim;
  int64_t rows;
  bool streamed;
};

// Tiles of 8 KV heads in pages, in the layout of ops/kv_layout.h.
class Tiles {
 public:
  explicit Tiles(const Case& c)
      : half_bytes_(kTileTokens * c.head_dim * c.type.bytes),
        pages_(c.streamed ? kBytes / page_bytes() : 1),
        data_(pages_ * page_bytes()) {
    // Unwritten memory would be one page of zeros. Any small numbers do.
    std::memset(data_.data(), 1, data_.bytes());
  }

  int64_t tile_bytes() const { return 2 * half_bytes_; }
  const std::byte* Keys(int64_t i) const {
    const int64_t page = i % pages_, head = i / pages_ % kHeads;
    return data_.data() + page * page_bytes() + head * tile_bytes();
  }
  const std::byte* Values(int64_t i) const { return Keys(i) + half_bytes_; }

 private:
  static constexpr int64_t kBytes = int64_t{256} << 20;
  static constexpr int64_t kHeads = 8;
  int64_t page_bytes() const { return kHeads * tile_bytes(); }

  int64_t half_bytes_;
  int64_t pages_;
  Buffer data_;
};

void Attend(benchmark::State& state, const Case& c) {
  const Tiles tiles(c);
  const int64_t stride = kernels::kStateHeader + c.head_dim;
  Buffer states(c.rows * stride * static_cast<int64_t>(sizeof(float)));
  auto* const values = reinterpret_cast<float*>(states.data());
  for (int64_t row = 0; row < c.rows; ++row)
    values[row * stride] = -std::numeric_limits<float>::infinity();
  const std::vector<float> q(c.rows * c.head_dim, 0.5f);
  const std::vector<kernels::TileSpan> spans(c.rows, {0, kTileTokens});
  const std::vector<float> scales(kTileTokens, 0.01f);
  const std::vector<int32_t> sums(c.rows);
  const auto attend = kernels::SelectIsa("").table->*c.type.attend;
  int64_t i = 0;
  for (auto _ : state) {
    attend({.q = q.data(),
            .q_stride = c.head_dim,
            .spans = spans.data(),
            .rows = c.rows,
            .k = tiles.Keys(i),
            .v = tiles.Values(i),
            .head_dim = c.head_dim,
            .value_dim = c.head_dim,
            .scale = 0.125f,
            .bias = nullptr,
            .state = values,
            .state_stride = stride,
            .next_k = tiles.Keys(i + 1),
            .next_v = tiles.Values(i + 1),
            .k_scales = scales.data(),
            .v_scales = scales.data(),
            .q_scales = scales.data(),
            .q_sums = sums.data()});
    if (c.streamed) ++i;
  }
  using benchmark::Counter;
  const auto rate = Counter::kIsIterationInvariantRate;
  state.counters["kv/s"] = Counter(static_cast<double>(tiles.tile_bytes()), rate, Counter::kIs1024);
  state.counters["op/s"] =
      Counter(static_cast<double>(4 * c.rows * kTileTokens * c.head_dim), rate);
}

const bool kRegistered = [] {
  for (const Type& type : kTypes) {
    for (const int64_t head_dim : kHeadDims) {
      for (const int64_t rows : kRows) {
        for (const bool streamed : {false, true}) {
          const std::string name =
              std::string("attention/") + type.name + "/head_dim:" + std::to_string(head_dim) +
              "/rows:" + std::to_string(rows) + (streamed ? "/streamed" : "/cached");
          benchmark::RegisterBenchmark(name.c_str(), Attend, Case{type, head_dim, rows, streamed});
        }
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace godwit::bench
