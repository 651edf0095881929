// The kernels as functions of a GPU. The names are those that CudaDevice looks up.
#include "cuda/kernels/kernel_list.h"

#define GODWIT_GLOBAL(Kernel)                                                    \
  extern "C" __global__ void __launch_bounds__(godwit::cuda::Kernel::kThreads)   \
      godwit_##Kernel(const __grid_constant__ godwit::cuda::Kernel::Args args) { \
    const godwit::cuda::GpuBlock<godwit::cuda::Kernel> block;                    \
    godwit::cuda::Kernel::Run(block, args);                                      \
  }
GODWIT_KERNELS(GODWIT_GLOBAL)
