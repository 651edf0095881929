// A text whose context lies on several ranks: this one reads and keeps some of its blocks.
//
// Star Attention on many hosts (arXiv 2411.17116, section 2). The blocks of the context go to the
// ranks in order, as many to each or by their speeds (spread_blocks.h). The anchor all read
// together and keep (attention/ring_layout.h), as far as it has a tile for each, and each reads its
// blocks behind it. The question and the answer go through all ranks; each shows them its blocks,
// and the last one their own keys, too. Where they choose what they see (blocks.h), each rank
// chooses for them among its own, as large a share of what they may choose as it has of the blocks
// from which they do: together they see as many as on one host.
#pragma once

#include <memory>

#include "attention/geometry.h"
#include "attention/make_policy.h"
#include "attention/policy.h"

namespace godwit {

// alone: how the text would be read and asked on one host. Throws Error(kInput) unless
// options.prefill is a star, and Error(kUnsupported) for a model or a policy that needs keys of
// other ranks in another way. The policy's AskFrom throws Error(kInput) for fewer blocks than
// ranks.
std::unique_ptr<AttentionPolicy> MakeShardPolicy(const AttentionGeometry& geometry,
                                                 const PolicyOptions& options,
                                                 std::unique_ptr<AttentionPolicy> alone);

}  // namespace godwit
