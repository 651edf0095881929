// For tests only: safetensors files, right or wrong, made from text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/test_folder.h"
#include "base/test_support.h"

namespace godwit {

// The 8 length bytes, then `header`, then `data`; the length may lie.
inline std::string SafetensorsBytes(std::string_view header, std::string_view data,
                                    uint64_t header_bytes) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(header_bytes >> (8 * i));
  file += header;
  file += data;
  return file;
}

inline std::string SafetensorsBytes(std::string_view header, std::string_view data) {
  return SafetensorsBytes(header, data, header.size());
}

inline std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace godwit
