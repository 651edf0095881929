// Before ranks work together they see that they mean the same.
#pragma once

#include <span>
#include <string>

#include "dist/communicator.h"

namespace godwit {

struct Fact {
  std::string name;  // "the model"
  std::string value;
};

// Throws Error(kInput) on all ranks, naming the first that differs from rank 0, its host and what
// differs. All but rank 0 have the code kOtherRank. Of a fact 256 bytes count.
void Agree(Communicator& ranks, std::span<const Fact> facts, const CancelToken* cancel = nullptr);

}  // namespace godwit
