// Before ranks work together they see that they mean the same.
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

// Of an error that all ranks throw: rank 0 tells it, and the others have the code kOtherRank.
ErrorData ToldByRankZero(const Communicator& ranks);

// Throws Error(kInput) on all ranks, naming the first that differs from rank 0, its host and what
// differs, as ToldByRankZero. Of a fact 256 bytes count.
void Agree(Communicator& ranks, std::span<const Fact> facts, const CancelToken* cancel = nullptr);

}  // namespace godwit
