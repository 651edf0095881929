// The kernels as functions of the CPU.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cuda/device.h"

namespace godwit::cuda {

// The order in which the threads of a phase run, one after the other.
enum class ThreadOrder { kAscending, kDescending };

struct EmulatedKernel {
  const char* name;
  int threads;
  int64_t shared_bytes;
  int64_t args_bytes;
  // Runs all blocks of a grid in ascending order, or all in descending order.
  void (*run)(const void* args, const Grid& grid, ThreadOrder order);
};

std::span<const EmulatedKernel> EmulatedKernels();
const EmulatedKernel* FindEmulatedKernel(std::string_view name);  // null: there is none

}  // namespace godwit::cuda
