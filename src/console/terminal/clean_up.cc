#include "console/terminal/clean_up.h"

#include <fcntl.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <utility>

namespace godwit::console {
namespace {

// Unfinished files, of which a verb has two or three at a time.
std::atomic<const char*> paths[16];
static_assert(std::atomic<const char*>::is_always_lock_free);

std::atomic<const char*>& FreeSlot() {
  for (auto& slot : paths) {
    if (slot == nullptr) return slot;
  }
  throw std::logic_error("too many unfinished files at a time");
}

#ifdef __linux__

// The record that getdents64 writes (man 2 getdents). readdir allocates memory, which a handler may
// not.
struct DirectoryEntry {
  uint64_t inode;
  int64_t offset;
  uint16_t bytes;
  uint8_t type;
  char name[1];
};

void RemoveFilesIn(int folder) {
  alignas(DirectoryEntry) char buffer[4096];
  long filled = 0;
  while ((filled = syscall(SYS_getdents64, folder, buffer, sizeof buffer)) > 0) {
    for (long at = 0; at < filled;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(buffer + at);
      unlinkat(folder, entry->name, 0);
      at += entry->bytes;
    }
  }
}

#else

// Without a call that a handler may make, the folder stays.
void RemoveFilesIn(int /*folder*/) {}

#endif

}  // namespace

RemovedOnSignal::RemovedOnSignal(std::string path) : path_(std::move(path)), slot_(FreeSlot()) {
  slot_ = path_.c_str();
}

RemovedOnSignal::~RemovedOnSignal() { slot_ = nullptr; }

void RemoveUnfinished() noexcept {
  for (const auto& slot : paths) {
    const char* const path = slot;
    if (path == nullptr || unlink(path) == 0) continue;
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) continue;
    RemoveFilesIn(folder);
    close(folder);
    rmdir(path);
  }
}

}  // namespace godwit::console
