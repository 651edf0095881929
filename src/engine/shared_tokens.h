// Facts common to ranks that work on one text: its tokens, and whether all ranks have the memory
// for it.
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

// Whether all ranks give the same number.
bool AllGive(Communicator& ranks, int64_t number);

// Throws Error(kInput) where the ranks differ in the version of this program, in `what_else`, or in
// the model (ModelFingerprint; no folder: they have none).
void AgreeOnModel(Communicator& ranks, const std::string& folder, Fact what_else);

// The memory that this rank lacks for its part of a prompt of `tokens`, as a message with its name;
// empty: none.
std::string MissingMemory(const Communicator& ranks, const TextPlan& plan, int64_t tokens,
                          int64_t query_tokens);
// The memory of all ranks.
struct RanksMemory {
  // The Error(kMemory) that all ranks have if one lacks memory, from the first of those. It ends
  // their request, and not their work.
  std::optional<Error> lack;
  int64_t free_bytes;  // for KV caches; the least of all ranks
};
// Compares the memory of all ranks. lack: of this rank; empty: none.
RanksMemory CompareMemory(Communicator& ranks, const KvBudget& budget, std::string_view lack);

}  // namespace godwit
