#include "base/control_groups.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/split_text.h"

namespace godwit {
namespace {

// The path of the process's group in a line of proc/self/cgroup: "0::/user.slice" (version 2) or
// "9:memory:/docker/1f" (version 1).
std::optional<std::string> GroupPath(std::string_view line, std::string_view controller) {
  const size_t first = line.find(':');
  const size_t second = line.find(':', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const auto names = fmt::format(",{},", line.substr(first + 1, second - first - 1));
  if (names.find(fmt::format(",{},", controller)) == std::string::npos) return std::nullopt;
  return std::string(line.substr(second + 1));
}

}  // namespace

ControlFile::ControlFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  for (ssize_t n = 1; n > 0 && size_ < text_.size(); size_ += static_cast<size_t>(n)) {
    n = std::max<ssize_t>(0, read(file, text_.data() + size_, text_.size() - size_));
  }
  close(file);
}

std::optional<int64_t> ControlFile::Number(std::string_view key) const {
  for (std::string_view rest = text(); !rest.empty();) {
    const std::string_view line = TakeLine(rest);
    if (line.starts_with(key) && line.substr(key.size()).starts_with(' ')) {
      return NumberAt(line.substr(key.size()));
    }
  }
  return std::nullopt;
}

std::optional<int64_t> ControlFile::NumberAt(std::string_view text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ')));
  int64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  return end.ec == std::errc() ? std::optional(value) : std::nullopt;
}

ControlGroups FindControlGroups(const std::string& root, std::string_view controller) {
  const ControlFile file(root + "/proc/self/cgroup");
  ControlGroups groups;
  std::string path = "/";
  for (std::string_view rest = file.text(); !rest.empty() && !groups.version1;) {
    const std::string_view line = TakeLine(rest);
    const auto own = GroupPath(line, controller);
    groups.version1 = own.has_value();
    path = own ? *own : GroupPath(line, "").value_or(path);
  }
  // The group lies above the mounted tree, in which a container sees its own group as the root.
  if (path.find("/..") != std::string::npos) path = "/";

  std::string base = root + "/sys/fs/cgroup";
  if (groups.version1) base += fmt::format("/{}", controller);
  for (;; path.resize(path.find_last_of('/'))) {
    groups.folders.push_back(base + (path == "/" ? "" : path));
    if (path.empty() || path == "/") return groups;
  }
}

}  // namespace godwit
