// Codes of 4 bits as int8, over Vec. Include after one of vec/*.h.
#pragma once

namespace godwit::kernels {
namespace {

void WidenNibbles(const WidenNibblesArgs& args) noexcept {
  constexpr int64_t kVecBytes = kLanes * int64_t{sizeof(float)}, kLine = 64;
  const Vec table = Repeat16(args.table);
  const uint8_t* const next = args.next != nullptr ? args.next : args.nibbles;
  for (int64_t line = 0; line < args.bytes; line += kLine) {
    __builtin_prefetch(next + line, /*for writing=*/0, /*second-level cache*/ 2);
    for (int64_t i = line; i < line + kLine; i += kVecBytes) {
      const Vec bytes = Load(reinterpret_cast<const float*>(args.nibbles + i));
      Store(reinterpret_cast<float*>(args.out + i), LookUp(table, LowNibbles(bytes)));
      Store(reinterpret_cast<float*>(args.out + args.bytes + i), LookUp(table, HighNibbles(bytes)));
    }
  }
}

}  // namespace
}  // namespace godwit::kernels
