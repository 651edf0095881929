// The policy of a text whose context several ranks read together, and of which each keeps a part.
// Every token sees and gets the same as on one host.
//
// Exact context parallelism (Ring Attention, arXiv 2310.01889; passing keys and values, arXiv
// 2411.01783). In every round (attention/ranks/ring_layout.h) the ranks read a chunk each, and keys
// and values go to all of them (attention/ranks/ring.h). The question and the answer go through all
// ranks. Each rank shows them its chunks, and the last one their own keys, too.
#pragma once

#include <memory>

#include "attention/core/geometry.h"
#include "attention/core/policy.h"
#include "attention/make_policy.h"
#include "attention/policies/prefill_spec.h"

namespace godwit {

// Makes the policy. alone: how the text would be read and asked on one host, "dense"; throws
// Error(kUnsupported) for another. The policy's SetQuestion throws Error(kInput) for fewer tiles
// than ranks.
std::unique_ptr<AttentionPolicy> MakeRingPolicy(const PolicyOptions& options,
                                                const PrefillSpec& spec,
                                                std::unique_ptr<AttentionPolicy> alone);

}  // namespace godwit
