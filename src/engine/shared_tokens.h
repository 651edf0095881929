// Facts common to ranks that share texts: numbers and tokens of rank 0, and the model.
#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "dist/agreement.h"
#include "dist/communicator.h"

namespace godwit {

// Returns the result of work(). If it throws, the other ranks are told why before it goes on; null:
// there are none.
template <class Work>
auto LeaveOnError(Communicator* ranks, Work&& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    if (ranks != nullptr) ranks->Leave(error.what());
    throw;
  }
}

// Returns rank 0's value on every rank.
int64_t NumberOfRankZero(Communicator& ranks, int64_t number);
std::vector<int32_t> TokensOfRankZero(Communicator& ranks, std::span<const int32_t> tokens);

// Throws Error(kInput) where the ranks differ in the version of this program, in `what_else`, or in
// the model (ModelFingerprint; no folder: they have none).
void AgreeOnModel(Communicator& ranks, const std::string& folder, Fact what_else);

}  // namespace godwit
