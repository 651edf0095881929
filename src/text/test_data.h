// Where the tests of this room find their data. For tests only.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

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

// A folder that lives as long as the object.
class TestFolder {
 public:
  TestFolder(const std::string& name,
             std::initializer_list<std::pair<std::string_view, std::string_view>> files)
      : path_(std::filesystem::temp_directory_path() /
              ("godwit_text_" + name + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
    for (const auto& [file, text] : files) {
      std::ofstream(path_ / file, std::ios::binary) << text;
    }
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace godwit
