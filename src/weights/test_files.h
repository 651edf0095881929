// For tests only: a temporary folder, and safetensors files, right or wrong, made from text.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/test_support.h"

namespace godwit {

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "godwit-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw Error(ErrorKind::kIo, name);
    path_ = name;
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  std::filesystem::path Write(std::string_view name, std::string_view content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

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
