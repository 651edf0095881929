// The .npy file format of NumPy, version 1.0: as much of it as one matrix of floats needs.
#pragma once

#include <cstdint>
#include <string>

namespace godwit::lab {

// What stands in front of the little-endian float32 elements of a row-major matrix. Its length is a
// multiple of 64, so that a mapped file is aligned.
std::string NpyHeader(int64_t rows, int64_t columns);

}  // namespace godwit::lab
