#include "cuda/device.h"

#include "base/error.h"
#include "base/machine_memory.h"

namespace godwit::cuda {

void ThrowNoDeviceMemory(const std::string& name, int64_t needed_bytes, int64_t free_bytes,
                         int64_t all_bytes) {
  Throw(ErrorKind::kMemory, "{} lacks memory: {} are needed, and {} of {} are free", name,
        FormatBytes(needed_bytes), FormatBytes(free_bytes), FormatBytes(all_bytes));
}

void ThrowNoHostMemory(const std::string& name, int64_t needed_bytes) {
  Throw(ErrorKind::kMemory,
        "this machine lacks memory from which {} copies: {} are needed, which stay where they are",
        name, FormatBytes(needed_bytes));
}

void CheckLaunch(const DeviceFacts& facts, const KernelCall& call) {
  if (call.shared_bytes > facts.shared_bytes) {
    Throw(ErrorKind::kUnsupported,
          "{} has too little shared memory: kernel {} needs {} of a block, found {}", facts.name,
          call.name, FormatBytes(call.shared_bytes), FormatBytes(facts.shared_bytes));
  }
  const Grid& grid = call.grid;
  if (grid.x > kMaxGrid.x || grid.y > kMaxGrid.y || grid.z > kMaxGrid.z) {
    Throw(ErrorKind::kUnsupported,
          "kernel {} would take {} x {} x {} blocks; {} takes {} x {} x {} at most", call.name,
          grid.x, grid.y, grid.z, facts.name, kMaxGrid.x, kMaxGrid.y, kMaxGrid.z);
  }
}

}  // namespace godwit::cuda
