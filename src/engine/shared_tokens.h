// What ranks that work on one text have in common before they begin: its tokens, and what they were
// told.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dist/communicator.h"
#include "engine/text_plan.h"
#include "godwit/engine.h"

namespace godwit {

// On every rank what rank 0 gives.
int64_t NumberOfRankZero(Communicator& ranks, int64_t number);
std::vector<int32_t> TokensOfRankZero(Communicator& ranks, std::span<const int32_t> tokens);

// Throw Error(kInput) where the ranks differ in the version of this program or in the model, whose
// config.json, tokenizer.json and the first bytes of whose weights are compared, or in options.
void AgreeOnModel(Communicator& ranks, const std::string& folder);
void AgreeOnOptions(Communicator& ranks, const TextPlan& plan, const GenerateOptions& options);

}  // namespace godwit
