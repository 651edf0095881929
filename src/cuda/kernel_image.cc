#include "cuda/kernel_image.h"

#ifdef GODWIT_KERNEL_IMAGE
// The file lies in the program as it is. An array in C++ would take the compiler longer.
__asm__(
    ".pushsection .rodata\n"
    ".balign 16\n"
    "godwit_kernel_image:\n"
    ".incbin \"" GODWIT_KERNEL_IMAGE
    "\"\n"
    "godwit_kernel_image_end:\n"
    ".byte 0\n"
    ".popsection\n");
extern "C" const std::byte godwit_kernel_image[] __attribute__((visibility("hidden")));
extern "C" const std::byte godwit_kernel_image_end[] __attribute__((visibility("hidden")));
#endif

namespace godwit::cuda {

std::span<const std::byte> KernelImage() {
#ifdef GODWIT_KERNEL_IMAGE
  return {godwit_kernel_image, godwit_kernel_image_end};
#else
  return {};
#endif
}

}  // namespace godwit::cuda
