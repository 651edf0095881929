// This file is compiled for no instruction set in particular: it runs before the machine's are
// known.
#include "kernels/first_level_cache.h"

#include <unistd.h>

namespace godwit::kernels {
namespace {

bool HoldsNextTile() {
#ifdef _SC_LEVEL1_DCACHE_SIZE
  return sysconf(_SC_LEVEL1_DCACHE_SIZE) >= 48 << 10;
#else
  return false;
#endif
}

}  // namespace

const bool kHoldsNextTile = HoldsNextTile();

}  // namespace godwit::kernels
