#include "base/machine_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/split_text.h"

namespace godwit {
namespace {

// What the kernel says in a file, read without allocating. Empty if there is no such file.
class ControlFile {
 public:
  explicit ControlFile(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    for (ssize_t n = 1; n > 0 && size_ < text_.size(); size_ += static_cast<size_t>(n)) {
      n = std::max<ssize_t>(0, read(file, text_.data() + size_, text_.size() - size_));
    }
    close(file);
  }

  std::string_view text() const { return {text_.data(), size_}; }

  // The number that the file begins with; none of "max".
  std::optional<int64_t> Number() const { return NumberAt(text()); }

  // That of the line "KEY NUMBER" or "KEY: NUMBER kB".
  std::optional<int64_t> Number(std::string_view key) const {
    for (std::string_view rest = text(); !rest.empty();) {
      const std::string_view line = TakeLine(rest);
      if (line.starts_with(key) && line.substr(key.size()).starts_with(' ')) {
        return NumberAt(line.substr(key.size()));
      }
    }
    return std::nullopt;
  }

 private:
  static std::optional<int64_t> NumberAt(std::string_view text) {
    text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ')));
    int64_t value = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
    return end.ec == std::errc() ? std::optional(value) : std::nullopt;
  }

  std::array<char, 1 << 14> text_;
  size_t size_ = 0;
};

// The files of a control group with a limit of memory.
struct MemoryGroup {
  std::string limit, usage, stat;
  // Lines of `stat`: the page cache.
  std::string_view inactive_file, active_file;
};

// The path of the process's group in a line of proc/self/cgroup, "0::/user.slice" (version 2) or
// "9:memory:/docker/1f" (version 1).
std::optional<std::string> GroupPath(std::string_view line, std::string_view controller) {
  const size_t first = line.find(':');
  const size_t second = line.find(':', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const auto names = fmt::format(",{},", line.substr(first + 1, second - first - 1));
  if (names.find(fmt::format(",{},", controller)) == std::string::npos) return std::nullopt;
  return std::string(line.substr(second + 1));
}

// The process's own group and those above it, each of which limits it, too.
std::vector<MemoryGroup> FindMemoryGroups(const std::string& root) {
  const ControlFile file(root + "/proc/self/cgroup");
  std::string path = "/";
  bool version1 = false;
  for (std::string_view rest = file.text(); !rest.empty() && !version1;) {
    const std::string_view line = TakeLine(rest);
    const auto memory = GroupPath(line, "memory");
    version1 = memory.has_value();
    path = memory ? *memory : GroupPath(line, "").value_or(path);
  }
  // Above what is mounted here, where a container sees its own group as the root.
  if (path.find("/..") != std::string::npos) path = "/";

  std::vector<MemoryGroup> groups;
  const std::string base = root + (version1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup");
  for (;; path.resize(path.find_last_of('/'))) {
    const std::string folder = base + (path == "/" ? "" : path);
    if (version1) {
      groups.push_back({folder + "/memory.limit_in_bytes", folder + "/memory.usage_in_bytes",
                        folder + "/memory.stat", "total_inactive_file", "total_active_file"});
    } else {
      groups.push_back({folder + "/memory.max", folder + "/memory.current", folder + "/memory.stat",
                        "inactive_file", "active_file"});
    }
    if (path.empty() || path == "/") return groups;
  }
}

MachineMemory Read(const std::string& meminfo, std::span<const MemoryGroup> groups) {
  constexpr int64_t kKiB = 1024;
  const ControlFile file(meminfo);
  MachineMemory memory;
  const std::optional<int64_t> total = file.Number("MemTotal:");
  memory.total_bytes = total ? *total * kKiB : sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  const std::optional<int64_t> available = file.Number("MemAvailable:");
  memory.available_bytes = available ? *available * kKiB : memory.total_bytes;
  for (const MemoryGroup& group : groups) {
    const std::optional<int64_t> limit = ControlFile(group.limit).Number();
    if (!limit) continue;
    // The page cache can be given back: a group's usage counts it, and reading a checkpoint fills
    // it.
    const ControlFile stat(group.stat);
    const int64_t used = ControlFile(group.usage).Number().value_or(0) -
                         stat.Number(group.inactive_file).value_or(0) -
                         stat.Number(group.active_file).value_or(0);
    memory.total_bytes = std::min(memory.total_bytes, *limit);
    memory.available_bytes =
        std::min(memory.available_bytes, std::max<int64_t>(0, *limit - std::max<int64_t>(0, used)));
  }
  return memory;
}

}  // namespace

MachineMemory ReadMachineMemory() {
  static const std::vector<MemoryGroup> groups = FindMemoryGroups("");
  static const std::string meminfo = "/proc/meminfo";
  return Read(meminfo, groups);
}

MachineMemory ReadMachineMemory(const std::string& root) {
  return Read(root + "/proc/meminfo", FindMemoryGroups(root));
}

void RefuseMemory(const std::string& what, int64_t bytes, const MachineMemory& memory) {
  Throw(ErrorKind::kMemory, "{} {}, and {} of the {} that this process may use are available", what,
        FormatBytes(bytes), FormatBytes(memory.available_bytes), FormatBytes(memory.total_bytes));
}

std::string FormatBytes(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace godwit
