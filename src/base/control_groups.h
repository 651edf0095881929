// The control groups of this process: where containers and systemd say what it may use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace godwit {

// The content of a kernel's file, read without allocating. Empty if there is no such file.
class ControlFile {
 public:
  explicit ControlFile(const std::string& path);

  std::string_view text() const { return {text_.data(), size_}; }

  // The number that the file begins with; none of "max".
  std::optional<int64_t> Number() const { return NumberAt(text()); }

  // The number of the line "KEY NUMBER" or "KEY: NUMBER kB".
  std::optional<int64_t> Number(std::string_view key) const;

  // The number that a text begins with, behind spaces.
  static std::optional<int64_t> NumberAt(std::string_view text);

 private:
  std::array<char, 1 << 14> text_;
  size_t size_ = 0;
};

struct ControlGroups {
  bool version1 = false;  // the names of the files differ
  // The process's own group first, then those above it, each of which limits it, too. One that is
  // not there has no files.
  std::vector<std::string> folders;
};

// The groups of a controller, "memory" or "cpu". root: the place of proc/self/cgroup and
// sys/fs/cgroup; "" is this machine.
ControlGroups FindControlGroups(const std::string& root, std::string_view controller);

}  // namespace godwit
