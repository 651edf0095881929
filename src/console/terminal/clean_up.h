// Removal of unfinished files and folders when a signal ends the process.
#pragma once

#include <atomic>
#include <string>

namespace godwit::console {

// RemovedOnSignal: while it lives, RemoveUnfinished removes `path`: a file, or a folder that holds
// only files. The path need not exist yet.
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

// For a signal handler that is about to end the process. Touches no memory except the paths.
void RemoveUnfinished() noexcept;

}  // namespace godwit::console
