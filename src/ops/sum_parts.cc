#include "ops/sum_parts.h"

#include <algorithm>
#include <cassert>

namespace godwit::ops {

void SumParts(const Exec& exec, MatrixView<const float> parts, std::span<float> out) {
  assert(parts.rows > 0 && parts.cols == std::ssize(out));
  constexpr int64_t kPiece = 4096;  // stays in the cache of a core while parts are added
  exec.ParallelRows((parts.cols + kPiece - 1) / kPiece, kPiece, [&](int64_t piece) {
    const int64_t begin = piece * kPiece, count = std::min(kPiece, parts.cols - begin);
    float* const to = out.data() + begin;
    if (to != parts.Row(0) + begin) std::copy_n(parts.Row(0) + begin, count, to);
    for (int64_t part = 1; part < parts.rows; ++part) {
      exec.kernels.add(to, parts.Row(part) + begin, count, to);
    }
  });
}

}  // namespace godwit::ops
