// What must not outlive a process that a signal ends: unfinished files and folders.
#pragma once

#include <atomic>
#include <string>

namespace godwit::console {

// While it lives, RemoveUnfinished takes `path` away: a file, or a folder that holds only files.
// It need not be there yet.
class RemovedOnSignal {
 public:
  explicit RemovedOnSignal(std::string path);
  ~RemovedOnSignal();
  RemovedOnSignal(const RemovedOnSignal&) = delete;
  RemovedOnSignal& operator=(const RemovedOnSignal&) = delete;

 private:
  const std::string path_;
  std::atomic<const char*>& slot_;
};

// For a signal handler that is about to end the process. Touches no memory but the paths.
void RemoveUnfinished() noexcept;

}  // namespace godwit::console
