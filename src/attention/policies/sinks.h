// StreamingLLM (arXiv 2309.17453, section 3.2): the first S tokens and a rolling window of the last
// W, with positions counted in the cache. Endless text in constant memory.
#pragma once

#include <memory>
#include <string_view>

#include "attention/make_policy.h"

namespace godwit {

// "sinks:S+W", S >= 0 and W >= 1. Throws Error(kUnsupported) for models whose rotary base depends
// on the length of the text.
std::unique_ptr<AttentionPolicy> MakeSinksPolicy(const AttentionGeometry& geometry,
                                                 const PolicyOptions& options,
                                                 std::string_view arguments);

}  // namespace godwit
