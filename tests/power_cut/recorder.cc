// The fsync and fdatasync of a program that links or preloads this file. They record what is on the
// disk once they return, and bring nothing there.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "tests/power_cut/power_cut.h"

namespace godwit::power_cut {
namespace {

struct Recorder {
  std::mutex mutex;  // guards the members below
  bool has_begun = false;
  std::filesystem::path live, disk;
  int most_us = 0;
  std::minstd_rand random;
  int64_t calls = 0;
  std::map<ino_t, int64_t> saved;  // the call that saved an inode last
};

// The object outlives all threads of the process.
Recorder& TheRecorder() {
  static auto* const recorder = new Recorder;
  return *recorder;
}

bool IsWithin(int descriptor, const std::filesystem::path& live) {
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  char path[4096];
  const ssize_t bytes = readlink(link.c_str(), path, sizeof(path));
  return bytes > 0 && std::string(path, static_cast<size_t>(bytes)).starts_with(live.native());
}

int Sync(int descriptor) {
  Recorder& recorder = TheRecorder();
  std::unique_lock lock(recorder.mutex);
  const char* const variable = std::getenv("POWER_CUT_DISK");
  if (!recorder.has_begun && variable != nullptr) {
    recorder.disk = variable;
    recorder.live = std::getenv("POWER_CUT_LIVE");
    recorder.most_us = std::atoi(std::getenv("POWER_CUT_US"));
    recorder.random.seed(static_cast<unsigned>(getpid()));
    recorder.has_begun = true;
  }
  const std::filesystem::path disk = recorder.disk;
  if (disk.empty() || !IsWithin(descriptor, recorder.live)) return 0;
  // Only what was there at the beginning of the call is on the disk at its end.
  const int64_t call = ++recorder.calls;
  const auto found = Look(descriptor);
  if (!found) return 0;
  if (!found->is_folder) Hold(disk, descriptor, found->inode);
  const std::chrono::microseconds wait(recorder.random() %
                                       static_cast<unsigned>(recorder.most_us + 1));
  lock.unlock();
  std::this_thread::sleep_for(wait);
  lock.lock();
  if (disk != recorder.disk || recorder.saved[found->inode] > call) return 0;
  Save(disk, *found);
  recorder.saved[found->inode] = call;
  return 0;
}

}  // namespace

void Record(const std::filesystem::path& live, const std::filesystem::path& disk, int most_us) {
  Recorder& recorder = TheRecorder();
  const std::lock_guard lock(recorder.mutex);
  recorder.has_begun = true;
  recorder.live = live;
  recorder.disk = disk;
  recorder.most_us = most_us;
  recorder.saved.clear();
}

}  // namespace godwit::power_cut

extern "C" {

__attribute__((visibility("default"))) int fsync(int descriptor) {
  return godwit::power_cut::Sync(descriptor);
}

__attribute__((visibility("default"))) int fdatasync(int descriptor) {
  return godwit::power_cut::Sync(descriptor);
}

// std::filesystem::rename calls it, too.
__attribute__((visibility("default"))) int rename(const char* from, const char* to) noexcept {
  const std::lock_guard lock(godwit::power_cut::NamesMutex());
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

}  // extern "C"
