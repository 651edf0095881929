// A GPU that attends to the keys near a token, while the host attends to the others: a policy
// around any that keeps every token.
#pragma once

#include <cstdint>
#include <memory>

#include "attention/core/geometry.h"
#include "attention/core/policy.h"
#include "tensor/dtype.h"

namespace godwit {

// Lets a GPU attend to `tokens` keys of each token: those at the beginning that `inner` always
// shows, and the last ones, in whole tiles. If `inner` tells a question from its context, only the
// question and the answer have it, so that the context stays what it is. Else all tokens have it,
// which is a way of reading of its own. Throws Error(kInput) for a number that is no multiple of
// kTileTokens, and Error(kUnsupported) for a model or a policy with which it cannot be.
std::unique_ptr<AttentionPolicy> MakeNearOnGpu(const AttentionGeometry& geometry, int64_t tokens,
                                               DType kv_type,
                                               std::unique_ptr<AttentionPolicy> inner);

}  // namespace godwit
