// Codes of 4 bits as int8, over Vec. Include after one of vec/*.h.
#pragma once

namespace godwit::kernels {
namespace {

void WidenNibbles(const WidenNibblesArgs& args) noexcept {
  constexpr int64_t kVecBytes = kLanes * int64_t{sizeof(float)};
  const Vec table = Repeat16(args.table);
  for (int64_t i = 0; i < args.bytes; i += kVecBytes) {
    const Vec bytes = Load(reinterpret_cast<const float*>(args.nibbles + i));
    Store(reinterpret_cast<float*>(args.out + i), LookUp(table, LowNibbles(bytes)));
    Store(reinterpret_cast<float*>(args.out + args.bytes + i), LookUp(table, HighNibbles(bytes)));
  }
}

}  // namespace
}  // namespace godwit::kernels
