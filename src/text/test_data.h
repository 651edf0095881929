// Where the tests of this room find their data. For tests only.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "base/test_support.h"

namespace godwit {

inline std::filesystem::path TestData() {
  return std::filesystem::path(GODWIT_SOURCE_DIR) / "tests/data";
}

// Real tokenizers and templates beside the checkout; absent on most machines.
inline std::filesystem::path SharedTokenizers() {
  return std::filesystem::path(GODWIT_SOURCE_DIR) / "../shared/data/tokenizers";
}

inline std::string ReadFile(const std::filesystem::path& path) {
  return ReadTextFile(path, size_t{256} << 20);
}

inline nlohmann::ordered_json ReadJson(const std::filesystem::path& path) {
  return ParseOrderedJson(ReadFile(path), path.string());
}

}  // namespace godwit
