// The features of a 64-bit Arm processor that kernels use, as its operating system names them.
// False on other processors.
#pragma once

namespace godwit::kernels {

bool HasNeon();
bool HasDotProducts();   // SDOT: Armv8.2, most processors since 2018
bool HasInt8Matrices();  // USDOT, SMMLA: Armv8.6
bool HasBFloat16();      // BFDOT: Armv8.6

}  // namespace godwit::kernels
