#include "weights/weight_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace godwit {

std::string TensorInfo::Describe() const {
  return fmt::format("{} [{}]", dtype_name, fmt::join(shape, ", "));
}

int64_t TensorInfo::NumElements() const {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  return count;
}

}  // namespace godwit
