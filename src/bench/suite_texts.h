// The texts that a suite's tests read, and their memory.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "bench/suite.h"
#include "model/spec.h"

namespace godwit::bench {

// The lengths of the texts of each depth, the first text the longest.
std::map<int64_t, std::vector<int64_t>> LengthsAtDepths(const SuiteOptions& options);

// The position at which the question of a test begins.
int64_t QuestionBegin(const SuiteOptions& options, const TestCase& test);

// Throws Error(kMemory) with the numbers, before memory is taken, if the caches of all depths do
// not fit beside weights of `weight_bytes`. Caches are kept from round to round.
void CheckMemory(const DecoderSpec& spec, const SuiteOptions& options, int64_t weight_bytes);

}  // namespace godwit::bench
