// WrittenFile: a file with a target's input, for readers that take a path.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

namespace godwit::fuzz {

// Lies in a folder of its own, which lives as long as the object.
class WrittenFile {
 public:
  explicit WrittenFile(const std::string& name)
      : folder_(std::filesystem::temp_directory_path() /
                ("godwit_fuzz_" + name + std::to_string(getpid()))),
        path_(folder_ / name) {
    std::filesystem::create_directories(folder_);
  }
  ~WrittenFile() { std::filesystem::remove_all(folder_); }
  WrittenFile(const WrittenFile&) = delete;
  WrittenFile& operator=(const WrittenFile&) = delete;

  void Write(std::span<const uint8_t> input) const {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(input.data()), std::ssize(input));
  }
  const std::filesystem::path& folder() const { return folder_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path folder_;
  std::filesystem::path path_;
};

}  // namespace godwit::fuzz
