#include "tests/power_cut/power_cut.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

namespace godwit::power_cut {
namespace {

namespace fs = std::filesystem;

struct Entry {
  ino_t inode = 0;
  bool is_folder = false;
  bool operator==(const Entry&) const = default;
};
using Names = std::map<std::string, Entry>;

std::string BytesOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

Names NamesIn(const fs::path& folder) {
  Names names;
  const std::lock_guard lock(NamesMutex());
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    struct stat status;
    if (lstat(entry.path().c_str(), &status) != 0) continue;  // removed meanwhile
    names[entry.path().filename()] = {.inode = status.st_ino, .is_folder = S_ISDIR(status.st_mode)};
  }
  return names;
}

std::string Text(const Names& names) {
  std::ostringstream text;
  for (const auto& [name, entry] : names) {
    text << entry.inode << ' ' << entry.is_folder << ' ' << name << '\n';
  }
  return text.str();
}

Names NamesOf(const std::string& text) {
  Names names;
  std::istringstream lines(text);
  Entry entry;
  std::string name;
  while (lines >> entry.inode >> entry.is_folder && lines.get() && std::getline(lines, name)) {
    names[name] = entry;
  }
  return names;
}

fs::path SavedPath(const fs::path& disk, const Entry& entry) {
  return disk / ((entry.is_folder ? "folder-" : "file-") + std::to_string(entry.inode));
}

fs::path HeldPath(const fs::path& disk, ino_t inode) {
  return disk / ("held-" + std::to_string(inode));
}

class ImageMaker {
 public:
  ImageMaker(fs::path disk, uint64_t seed) : disk_(std::move(disk)), random_(seed) {
    block_ = Chance(2) ? 512 : 4096;
  }

  // live: empty: the folder is there no more. All names are read before any bytes, so that no file
  // is older than its name.
  void Plan(ino_t folder, const fs::path& live, const fs::path& image) {
    const Names durable = NamesOf(BytesOf(SavedPath(disk_, {folder, true})));
    const Names now = live.empty() ? Names() : NamesIn(live);
    folders_.push_back({image, ModeOf(live, 0700)});
    for (const auto& one : Left(durable, now)) {
      const std::string& name = one.first;
      const Entry& entry = one.second;
      const auto same =
          std::ranges::find_if(now, [&](const auto& other) { return other.second == entry; });
      const fs::path from = same == now.end() ? fs::path() : live / same->first;
      if (entry.is_folder) {
        Plan(entry.inode, from, image / name);
      } else {
        files_.push_back({image / name, from, entry});
      }
    }
  }

  void Make() {
    for (const auto& [path, mode] : folders_) {
      fs::create_directory(path);
      fs::permissions(path, fs::perms(mode));
    }
    for (const File& file : files_) {
      const fs::path held = HeldPath(disk_, file.entry.inode);
      const bool is_live = !file.live.empty() && fs::exists(file.live);
      const fs::path& from = is_live ? file.live : held;
      std::ofstream(file.image, std::ios::binary)
          << Mixed(BytesOf(SavedPath(disk_, file.entry)), BytesOf(from));
      fs::permissions(file.image, fs::perms(ModeOf(from, 0600)));
    }
  }

 private:
  struct File {
    fs::path image, live;
    Entry entry;
  };

  bool Chance(uint64_t of) { return random_() % of == 0; }
  size_t UpTo(size_t most) { return most == 0 ? 0 : random_() % (most + 1); }

  static mode_t ModeOf(const fs::path& path, mode_t otherwise) {
    struct stat status;
    return !path.empty() && lstat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : otherwise;
  }

  // The names that are left. Those of one file change together, and so do files of one name.
  Names Left(const Names& durable, const Names& now) {
    const uint64_t way = random_() % 3;
    if (way == 0) return durable;
    if (way == 1) return now;
    Names left;
    std::set<std::string> open;
    for (const Names* const names : {&durable, &now}) {
      for (const auto& [name, entry] : *names) open.insert(name);
    }
    while (!open.empty()) {
      const bool is_now = Chance(2);
      std::vector<std::string> group = {*open.begin()};
      open.erase(open.begin());
      for (size_t i = 0; i < group.size(); ++i) {
        const std::string name = group[i];
        const Names& source = is_now ? now : durable;
        if (const auto found = source.find(name); found != source.end()) left.insert(*found);
        std::erase_if(open, [&](const std::string& other) {
          const bool is_linked =
              Share(durable, now, name, other) || Share(now, durable, name, other);
          if (is_linked) group.push_back(other);
          return is_linked;
        });
      }
    }
    return left;
  }

  // Whether the file of a name has another name on the other side.
  static bool Share(const Names& a, const Names& b, const std::string& name,
                    const std::string& other) {
    const auto of_a = a.find(name), of_b = b.find(other);
    return of_a != a.end() && of_b != b.end() && of_a->second == of_b->second;
  }

  // Blocks of what a file had on the disk, of what was written since, of half of that, or zeros.
  std::string Mixed(const std::string& durable, const std::string& now) {
    const auto [least, most] = std::minmax({durable.size(), now.size()});
    const size_t size = Chance(3) ? least : Chance(2) ? most : least + UpTo(most - least);
    std::string old = durable, fresh = now;
    old.resize(std::max(size, durable.size()));
    fresh.resize(std::max(size, now.size()));
    const uint64_t way = random_() % 3;  // all, none, or some of the blocks
    std::string mixed;
    for (size_t at = 0; at < size; at += block_) {
      const size_t bytes = std::min(block_, size - at);
      std::string block = old.substr(at, bytes);
      const bool is_fresh = way == 1 || (way == 2 && Chance(2));
      if (is_fresh && at < now.size()) {
        const size_t part = Chance(8) ? UpTo(bytes) : bytes;
        block.replace(0, part, fresh, at, part);
      }
      mixed += block;
    }
    return mixed;
  }

  fs::path disk_;
  std::mt19937_64 random_;
  size_t block_;
  std::vector<std::pair<fs::path, mode_t>> folders_;
  std::vector<File> files_;
};

ino_t InodeOf(const fs::path& path) {
  struct stat status {};
  lstat(path.c_str(), &status);
  return status.st_ino;
}

}  // namespace

std::mutex& NamesMutex() {
  static auto* const mutex = new std::mutex;  // it outlives all threads
  return *mutex;
}

std::optional<Durable> Look(int descriptor) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return std::nullopt;
  Durable found{.inode = status.st_ino, .is_folder = S_ISDIR(status.st_mode), .bytes = {}};
  const fs::path path = "/proc/self/fd/" + std::to_string(descriptor);
  if (found.is_folder) {
    found.bytes = Text(NamesIn(path / ""));
  } else if (S_ISREG(status.st_mode)) {
    found.bytes = BytesOf(path);
  } else {
    return std::nullopt;
  }
  return found;
}

void Hold(const fs::path& disk, int descriptor, ino_t inode) {
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  (void)!linkat(AT_FDCWD, path.c_str(), AT_FDCWD, HeldPath(disk, inode).c_str(), AT_SYMLINK_FOLLOW);
}

void Save(const fs::path& disk, const Durable& durable) {
  const fs::path path = SavedPath(disk, {durable.inode, durable.is_folder});
  fs::path part = path;
  part += ".part";
  std::ofstream(part, std::ios::binary) << durable.bytes;
  std::error_code ignored;
  fs::rename(part, path, ignored);
}

void BeginDisk(const fs::path& live, const fs::path& disk) {
  fs::create_directory(disk);
  const auto save = [&](const fs::path& path) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (const auto found = Look(descriptor)) {
      if (!found->is_folder) Hold(disk, descriptor, found->inode);
      Save(disk, *found);
    }
    close(descriptor);
  };
  save(live);
  for (const auto& entry : fs::recursive_directory_iterator(live)) save(entry.path());
}

void MakeImage(const fs::path& live, const fs::path& disk, const fs::path& image, uint64_t seed) {
  ImageMaker maker(disk, seed);
  maker.Plan(InodeOf(live), live, image);
  maker.Make();
}

}  // namespace godwit::power_cut
