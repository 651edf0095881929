#include "sampling/allow_only.h"

#include <algorithm>
#include <cmath>

namespace godwit {

void AllowOnly(std::span<const uint32_t> allowed, std::span<float> logits) {
  constexpr size_t kBits = 32;
  for (size_t begin = 0; begin < logits.size(); begin += kBits) {
    const size_t word = begin / kBits;
    const uint32_t bits = word < allowed.size() ? allowed[word] : 0;
    const size_t count = std::min(kBits, logits.size() - begin);
    for (size_t bit = 0; bit < count; ++bit) {
      if ((bits >> bit & 1) == 0) logits[begin + bit] = -INFINITY;
    }
  }
}

}  // namespace godwit
