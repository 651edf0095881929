// A text that is read in one way and asked in another: the rows of its context see the last W
// tokens before them, those behind it what another policy shows them of all that was read.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "attention/geometry.h"
#include "attention/policy.h"

namespace godwit {

inline constexpr std::string_view kPrefillUsage = "window:W";

// "window:64" -> 64. Throws Error(kInput) for all else.
int64_t ParsePrefill(std::string_view spec);

// spec: as ParsePrefill takes it. `asked` shows what the rows from AskFrom on see. No position
// moves while the context is read, so this serves every model.
std::unique_ptr<AttentionPolicy> MakePrefillPolicy(const AttentionGeometry& geometry,
                                                   std::string_view spec,
                                                   std::unique_ptr<AttentionPolicy> asked);

}  // namespace godwit
