// Index(i): a signed index or size as the C++ library takes it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace godwit::quant {

inline size_t Index(int64_t i) { return static_cast<size_t>(i); }

}  // namespace godwit::quant
