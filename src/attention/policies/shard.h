// The policy of a text whose context lies on several ranks: this one reads and keeps some of its
// blocks.
//
// Star Attention on many hosts (arXiv 2411.17116, section 2). The blocks of the context go to the
// ranks in order, equally many to each or by their speeds (spread_blocks.h). All ranks read the
// anchor together and keep it (attention/ranks/ring_layout.h), as far as it has a tile for each.
// Each reads its blocks behind it. The question and the answer go through all ranks. Each rank
// shows them its blocks, and the last one their own keys, too. Where they choose what they see
// (blocks.h), each rank chooses for them among its own blocks. Its share of the choice is its share
// of the blocks, so that together they see as many as on one host.
#pragma once

#include <memory>

#include "attention/core/geometry.h"
#include "attention/core/policy.h"
#include "attention/make_policy.h"

namespace godwit {

// Makes the policy. alone: how the text would be read and asked on one host. Throws Error(kInput)
// unless options.prefill is a star. Throws Error(kUnsupported) for a model or a policy that needs
// keys of other ranks in another way. The policy's SetQuestion throws Error(kInput) for fewer
// blocks than ranks.
std::unique_ptr<AttentionPolicy> MakeShardPolicy(const AttentionGeometry& geometry,
                                                 const PolicyOptions& options,
                                                 std::unique_ptr<AttentionPolicy> alone);

}  // namespace godwit
