// Block-sparse retrieval: the cache keeps everything, and a token of the question or the answer
// reads the blocks of it that matter to it (blocks_spec.h).
#pragma once

#include <memory>
#include <string_view>

#include "attention/make_policy.h"

namespace godwit {

// arguments: what follows "blocks:". Throws as MakePolicy does.
std::unique_ptr<AttentionPolicy> MakeBlocksPolicy(const AttentionGeometry& geometry,
                                                  const PolicyOptions& options,
                                                  std::string_view arguments);

}  // namespace godwit
