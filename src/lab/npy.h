// The part of NumPy's .npy file format, version 1.0, that one matrix of floats needs.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace godwit::lab {

static_assert(std::endian::native == std::endian::little, "rows are written as they lie in memory");

// The bytes in front of the little-endian float32 elements of a row-major matrix. Their number is a
// multiple of 64, so that a mapped file is aligned.
inline std::string NpyHeader(int64_t rows, int64_t columns) {
  constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);
  constexpr size_t kLengthBytes = 2;
  constexpr size_t kAlignment = 64;
  std::string description =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, columns);
  const size_t unpadded = kMagic.size() + kLengthBytes + description.size() + 1;
  description.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  description += '\n';

  std::string header(kMagic);
  header += static_cast<char>(description.size() % 256);
  header += static_cast<char>(description.size() / 256);
  return header + description;
}

}  // namespace godwit::lab
