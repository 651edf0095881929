// Star Attention, phase 2 (arXiv 2411.17116, section 2.2). Every rank has attended to the keys that
// lie with it; their merged states are the attention over all keys.
#pragma once

#include <span>

#include "dist/communicator.h"
#include "ops/attention.h"
#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit {

// Merges the states of all ranks. texts: rows whose states are this rank's. Every rank sends
// PackedState(value_dim) floats for each head of each row to all others, in one message unless they
// are too large for one. It merges in the order of ranks, so that all get the same bits. out,
// sink_logits: as ops::Attention has them. Throws what the communicator does.
void FinishWithRanks(const Exec& exec, Communicator& ranks, const ops::AttentionShape& shape,
                     std::span<const ops::AttentionRows> texts, std::span<const float> sink_logits,
                     MatrixView<float> out);

}  // namespace godwit
