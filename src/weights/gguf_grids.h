// The grids of GGUF's types IQ2 and IQ3. An entry has the digits of the magnitudes of neighbours,
// the first in the lowest bits. It has 8 digits of 2 bits for IQ2, and 4 of 3 bits for IQ3. Tables
// of gguf_blocks.cc have the magnitudes.
#pragma once

#include <cstdint>

namespace godwit {

extern const uint16_t kIq2XxsGrid[256];
extern const uint16_t kIq2XsGrid[512];
extern const uint16_t kIq2SGrid[1024];
extern const uint16_t kIq3XxsGrid[256];
extern const uint16_t kIq3SGrid[512];

}  // namespace godwit
