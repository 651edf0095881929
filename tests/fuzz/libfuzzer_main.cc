#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

// GODWIT_FUZZ_TARGET: the function of targets.h that this program runs.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  godwit::fuzz::GODWIT_FUZZ_TARGET({data, size});
  return 0;
}
