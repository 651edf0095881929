// Attention states that ranks exchange. Each rank has the states over its own keys
// (AttentionRows::states) for rows of several texts. They merge in the order of ranks.
#pragma once

#include <cstdint>
#include <span>

#include "ops/attention.h"
#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit::ops {

// A range of the states of all texts, text after text, each in head-major order.
struct StateRange {
  std::span<const AttentionRows> texts;
  int64_t begin;
  int64_t end;
  int64_t count() const { return end - begin; }
};

// The number of states of all texts.
int64_t StatesOf(const AttentionShape& shape, std::span<const AttentionRows> texts);

// packed [count, PackedState(value_dim)] gets the states of a range, to be sent.
void PackStatesOf(const AttentionShape& shape, const StateRange& range, std::span<float> packed);

// Merges the states of a range over all ranks, in ascending order. Computes their rows of out
// [rows, heads * value_dim]. packed [ranks, count, PackedState(value_dim)]: the results of
// PackStatesOf on all ranks. sink_logits: as Attention has them. On all cores.
void FinishPacked(const Exec& exec, const AttentionShape& shape, const StateRange& range,
                  int64_t ranks, std::span<const float> packed, std::span<const float> sink_logits,
                  MatrixView<float> out);

}  // namespace godwit::ops
