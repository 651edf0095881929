// Advice on flags for a suite of tests that does not fit into memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "bench/suite.h"
#include "model/spec.h"

namespace godwit::lab {

// A storage of weights, as --weights spells it, and the bytes of the model in it.
struct StoredWeights {
  std::string_view name;
  int64_t bytes = 0;
};

// The flags with which the suite, refused by bench::CheckMemory beside weights of `weight_bytes`,
// would fit: each alone where one is enough, else several together. Empty: none would do. storages:
// those that the model can be loaded in, the widest first.
std::string MemoryHint(const DecoderSpec& spec, const bench::SuiteOptions& suite,
                       int64_t weight_bytes, std::span<const StoredWeights> storages);

}  // namespace godwit::lab
