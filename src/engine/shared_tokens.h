// What ranks that work on one text have in common before they begin: its tokens, and what they were
// told.
#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "dist/communicator.h"
#include "engine/text_plan.h"
#include "godwit/engine.h"

namespace godwit {

// What work() gives. If it throws, the other ranks are told why before it goes on; null: there are
// none.
template <class Work>
auto OrLeave(Communicator* ranks, Work&& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    if (ranks != nullptr) ranks->Leave(error.what());
    throw;
  }
}

// On every rank what rank 0 gives.
int64_t NumberOfRankZero(Communicator& ranks, int64_t number);
std::vector<int32_t> TokensOfRankZero(Communicator& ranks, std::span<const int32_t> tokens);

// Throw Error(kInput) where the ranks differ in the version of this program or in the model
// (ModelFingerprint), or in options.
void AgreeOnModel(Communicator& ranks, const std::string& folder);
void AgreeOnOptions(Communicator& ranks, const TextPlan& plan, const GenerateOptions& options);
// Throws Error(kMemory) on all ranks if one of them has not the memory for its part of a prompt of
// `tokens`, with its name and what it lacks.
void AgreeOnMemory(Communicator& ranks, const TextPlan& plan, int64_t tokens, int64_t query_tokens);

}  // namespace godwit
