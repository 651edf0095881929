// What --prefill auto comes to.
#pragma once

#include <string>

#include "attention/geometry.h"
#include "attention/make_policy.h"

namespace godwit {

inline constexpr std::string_view kAutoPrefill = "auto";

// What options.prefill is where it is not kAutoPrefill, which loses nothing if it can: alone a
// context is read as ever (empty). Ranks read it in a ring, with a chunk for which a key takes them
// longer to attend to than to receive (docs/papers/ring-attention.md), by their speeds; where these
// are unknown, with the usual one. Where the largest chunk is too small for that, or question and
// answer choose among blocks, as a star.
std::string ChoosePrefill(const AttentionGeometry& geometry, const PolicyOptions& options);

}  // namespace godwit
