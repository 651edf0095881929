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

#include "dist/agreement.h"
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

// Throws Error(kInput) where the ranks differ in the version of this program, in what else matters,
// or in the model (ModelFingerprint; no folder: they have none).
void AgreeOnModel(Communicator& ranks, const std::string& folder, Fact what_else);

// What this rank lacks for its part of a prompt of `tokens`, with its name; empty: nothing.
std::string LackOfMemory(const Communicator& ranks, const TextPlan& plan, int64_t tokens,
                         int64_t query_tokens);
// What memory the ranks have.
struct RanksRoom {
  // Where one lacks something, the Error(kMemory) that all of them have: of the first. It ends
  // their request, and not their work.
  std::optional<Error> lack;
  int64_t free_bytes;  // for KV caches; the least of all
};
// lack: of this rank, empty where it lacks nothing.
RanksRoom CompareRoom(Communicator& ranks, const KvBudget& budget, std::string_view lack);

}  // namespace godwit
