#include "cuda/emulated_kernels.h"

#include <cstring>
#include <new>
#include <type_traits>
#include <vector>

#include "cuda/kernels/block.h"
#include "cuda/kernels/kernel_list.h"

namespace godwit::cuda {
namespace {

// Shared memory of a block. It begins as NaN for each block, so that what a kernel forgot to set
// shows. It has its own piece of the heap, so that sanitizers see what lies outside.
class SharedMemory {
 public:
  explicit SharedMemory(size_t bytes)
      : bytes_(bytes), memory_(::operator new (bytes, std::align_val_t{kAlignment})) {}
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() { ::operator delete (memory_, std::align_val_t{kAlignment}); }

  void* Fresh() {
    std::memset(memory_, 0xff, bytes_);
    return memory_;
  }

 private:
  static constexpr size_t kAlignment = 16;
  size_t bytes_;
  void* memory_;
};

template <class Kernel>
void RunGrid(const void* args, const Grid& grid, ThreadOrder order) {
  typename Kernel::Args copy;
  std::memcpy(&copy, args, sizeof(copy));
  SharedMemory shared(sizeof(typename Kernel::Shared));
  const bool descending = order == ThreadOrder::kDescending;
  const int64_t blocks = grid.x * grid.y * grid.z;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t at = descending ? blocks - 1 - i : i;
    const BlockPlace place = {at % grid.x, at / grid.x % grid.y, at / grid.x / grid.y};
    Kernel::Run(EmulatedBlock<Kernel>(place, shared.Fresh(), descending), copy);
  }
}

template <class Kernel>
constexpr EmulatedKernel EntryOf() {
  const bool empty = std::is_empty_v<typename Kernel::Shared>;
  return {.name = Kernel::kName,
          .threads = Kernel::kThreads,
          .shared_bytes = empty ? 0 : int64_t{sizeof(typename Kernel::Shared)},
          .args_bytes = sizeof(typename Kernel::Args),
          .run = RunGrid<Kernel>};
}

#define GODWIT_EMULATED(Kernel) EntryOf<Kernel>(),
constexpr EmulatedKernel kKernels[] = {GODWIT_KERNELS(GODWIT_EMULATED)};
#undef GODWIT_EMULATED

}  // namespace

std::span<const EmulatedKernel> EmulatedKernels() { return kKernels; }

const EmulatedKernel* FindEmulatedKernel(std::string_view name) {
  for (const EmulatedKernel& kernel : kKernels) {
    if (name == kernel.name) return &kernel;
  }
  return nullptr;
}

}  // namespace godwit::cuda
