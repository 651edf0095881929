// The texts that a suite's tests read, and their memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "bench/suite.h"
#include "kv/kv_pool.h"
#include "model/decoder.h"
#include "model/spec.h"

namespace godwit::bench {

// The lengths of the texts of each depth, the first text the longest.
std::map<int64_t, std::vector<int64_t>> LengthsAtDepths(const SuiteOptions& options);

// The position at which the question of a test begins.
int64_t QuestionBegin(const SuiteOptions& options, const TestCase& test);

// The pool of the suite's texts. Without one in the options it ends where memory does, and the file
// in which the model's weights lie counts as taken.
std::shared_ptr<KvPool> PoolFor(const Decoder& model, const SuiteOptions& options);

// The memory of a suite, in bytes. Caches of all depths are kept from round to round.
struct SuiteMemory {
  int64_t weights = 0;
  int64_t keys = 0;     // and values; with a file of the pool, they lie there
  int64_t index = 0;    // derived from keys
  int64_t states = 0;   // of recurrent layers, at most
  int64_t scratch = 0;  // of the largest step, and page tables: about
  int64_t longest = 0;  // tokens of the longest text
  int64_t texts = 0;    // of all depths
};

// Throws as a policy does that cannot serve the model.
SuiteMemory MemoryOf(const DecoderSpec& spec, const SuiteOptions& options, int64_t weight_bytes);

// Throws Error(kMemory) with the numbers, before memory is taken, if the caches of all depths do
// not fit beside weights of `weight_bytes`.
void CheckMemory(const DecoderSpec& spec, const SuiteOptions& options, int64_t weight_bytes);

}  // namespace godwit::bench
