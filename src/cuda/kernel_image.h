// The kernels for GPUs that this build has.
#pragma once

#include <cstddef>
#include <span>

namespace godwit::cuda {

// A fat binary with code for several GPUs (src/cuda/room.cmake). Empty: the build found no compiler
// of CUDA.
std::span<const std::byte> KernelImage();

}  // namespace godwit::cuda
