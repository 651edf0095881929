// What --prefill auto comes to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "attention/geometry.h"
#include "attention/make_policy.h"

namespace godwit {

inline constexpr std::string_view kAutoPrefill = "auto";

// What options.prefill is where it is not kAutoPrefill, which loses nothing if it can: alone a
// context is read as ever (empty). Ranks read it in a ring, with a chunk for which a key takes them
// longer to attend to than to receive (docs/papers/ring-attention.md), by their speeds; where these
// are unknown, with the usual one. Where the largest chunk is too small for that, a context of so
// many tokens is read as a star, if it has a block for each and is not too short for a star to save
// anything; where question and answer choose among blocks it always is.
std::string ChoosePrefill(const AttentionGeometry& geometry, const PolicyOptions& options,
                          int64_t context);

}  // namespace godwit
