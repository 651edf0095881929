// For tests only: a temporary folder, removed with everything in it when the object goes.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace godwit {

class TempFolder {
 public:
  // files: name and content of each.
  TempFolder(std::initializer_list<std::pair<std::string_view, std::string_view>> files = {}) {
    std::string name = (std::filesystem::temp_directory_path() / "godwit-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw Error(ErrorKind::kIo, name);
    path_ = name;
    for (const auto& [file, content] : files) Write(file, content);
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // `name` may lead through folders, which are made. Returns the file's path.
  std::filesystem::path Write(std::string_view name, std::string_view content) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace godwit
