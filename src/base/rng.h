// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as
// 1, 2, 3", SC 2011).
//
// A number is a pure function of its key, with no state to carry around. A draw thus does not
// depend on its batch, on the order of the draws or on how many came before. A rejected draft needs
// no rewinding. Everything here is thread-safe.
#pragma once

#include <array>
#include <cstdint>

namespace godwit {

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// Uniform over all 64-bit values. Distinct (sequence, position, draw) give distinct blocks under
// one seed, for 0 <= position < 2^48 and draw < 2^16 (`draw` numbers the needs of one position).
uint64_t RandomBits(uint64_t seed, uint64_t sequence, int64_t position, uint32_t draw);

// Uniform in [0, 1), a multiple of 2^-53.
double Uniform(uint64_t seed, uint64_t sequence, int64_t position, uint32_t draw);

}  // namespace godwit
