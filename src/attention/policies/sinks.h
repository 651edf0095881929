// StreamingLLM (arXiv 2309.17453, section 3.2): the first S tokens and a rolling window of the last
// W, with positions counted in the cache. Endless text in constant memory.
#pragma once

#include <memory>
#include <string_view>

#include "attention/make_policy.h"

namespace godwit {

// Makes "sinks:S+W", or "sinks:S+W,pin=N" (sinks_spec.h). Throws Error(kUnsupported) for models
// whose rotary base depends on the length of the text. It also throws for models that would not see
// the sinks, since all of their layers have a window.
std::unique_ptr<AttentionPolicy> MakeSinksPolicy(const AttentionGeometry& geometry,
                                                 const PolicyOptions& options,
                                                 std::string_view arguments);

// "window:W": no sinks (window attention, section 3.1).
std::unique_ptr<AttentionPolicy> MakeWindowPolicy(const AttentionGeometry& geometry,
                                                  const PolicyOptions& options,
                                                  std::string_view arguments);

}  // namespace godwit
