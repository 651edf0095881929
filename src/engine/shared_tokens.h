// What ranks that work on one text have in common: its tokens, and whether all of them have the
// memory for it.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

// Whether all ranks give the same.
bool AllGive(Communicator& ranks, int64_t number);

// Throws Error(kInput) where the ranks differ in the version of this program, in the model
// (ModelFingerprint), or in the tokens of a step.
void AgreeOnModel(Communicator& ranks, const std::string& folder, int64_t step_tokens);

// What this rank lacks for its part of a prompt of `tokens`, with its name; empty: nothing.
std::string LackOfMemory(const Communicator& ranks, const TextPlan& plan, int64_t tokens,
                         int64_t query_tokens);
// The Error(kMemory) that all ranks have where one lacks something: the first of them. It ends
// their request, and not their work.
std::optional<Error> FirstLack(Communicator& ranks, std::string_view mine);

}  // namespace godwit
