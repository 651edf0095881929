// The texts that a suite's tests read, and what they take.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "bench/suite.h"
#include "model/spec.h"

namespace godwit::bench {

// How long the texts of each depth get, the first text the longest.
std::map<int64_t, std::vector<int64_t>> LengthsAtDepths(const SuiteOptions& options);

// Where the question of a test begins.
int64_t AskFrom(const SuiteOptions& options, const TestCase& test);

// Throws Error(kMemory) with the numbers, before memory is taken, if the caches of all depths
// (they are kept from round to round) do not fit beside weights of `weight_bytes`.
void CheckMemory(const DecoderSpec& spec, const SuiteOptions& options, int64_t weight_bytes);

}  // namespace godwit::bench
