// The check, before ranks work together, that they agree.
#pragma once

#include <span>
#include <string>

#include "dist/communicator.h"
#include "godwit/error.h"

namespace godwit {

struct Fact {
  std::string name;  // "the model"
  std::string value;
};

// The data of an error that all ranks throw: rank 0 tells it, and the others have the code
// kOtherRank.
ErrorData ReportedByRankZero(const Communicator& ranks);

// Throws Error(kInput) on all ranks if facts differ. It names the first rank that differs from rank
// 0, its host and the fact, as ReportedByRankZero. Only 256 bytes of a fact count.
void Agree(Communicator& ranks, std::span<const Fact> facts, const CancelToken* cancel = nullptr);

}  // namespace godwit
