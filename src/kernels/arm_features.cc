#include "kernels/arm_features.h"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#include <sys/types.h>
#endif

namespace godwit::kernels {

#if defined(__aarch64__) && defined(__linux__)

bool HasNeon() { return (getauxval(AT_HWCAP) & HWCAP_ASIMD) != 0; }
bool HasDotProducts() { return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0; }
bool HasInt8Matrices() { return (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0; }
bool HasBFloat16() { return (getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0; }

#elif defined(__aarch64__) && defined(__APPLE__)

namespace {

bool Has(const char* feature) {
  int value = 0;
  size_t bytes = sizeof(value);
  return sysctlbyname(feature, &value, &bytes, nullptr, 0) == 0 && value != 0;
}

}  // namespace

bool HasNeon() { return true; }
bool HasDotProducts() { return Has("hw.optional.arm.FEAT_DotProd"); }
bool HasInt8Matrices() { return Has("hw.optional.arm.FEAT_I8MM"); }
bool HasBFloat16() { return Has("hw.optional.arm.FEAT_BF16"); }

#else

bool HasNeon() { return false; }
bool HasDotProducts() { return false; }
bool HasInt8Matrices() { return false; }
bool HasBFloat16() { return false; }

#endif

}  // namespace godwit::kernels
