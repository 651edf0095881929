// The choice of --prefill auto.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "attention/core/geometry.h"
#include "attention/make_policy.h"

namespace godwit {

inline constexpr std::string_view kAutoPrefill = "auto";

// Returns options.prefill unless it is kAutoPrefill. That chooses a way without loss if it can.
// Alone a context is read as ever (empty). Ranks read it in a ring, with a chunk for which
// attending to a key takes them longer than receiving it (docs/papers/ring-attention.md). This
// depends on their speeds; where these are unknown, the chunk is the usual one.
//
// A star is chosen for a context of so many tokens where the largest chunk is too small. The
// context must have a block for each rank and be long enough for a star to save anything. Where
// question and answer choose among blocks, it is always a star.
//
// asked: the facts of the policy by which the text is asked, or of one around it.
std::string ChoosePrefill(const AttentionGeometry& geometry, const PolicyOptions& options,
                          const PolicyFacts& asked, int64_t context);

}  // namespace godwit
