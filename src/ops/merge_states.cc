#include "ops/merge_states.h"

#include <algorithm>
#include <cassert>

#include "ops/attention_state.h"

namespace godwit::ops {
namespace {

// The place of a state among those of all texts.
struct StatePlace {
  const AttentionRows* text;
  int64_t index;  // among the text's states
};

StatePlace PlaceAt(const AttentionShape& shape, std::span<const AttentionRows> texts,
                   int64_t state) {
  for (const AttentionRows& text : texts) {
    const int64_t states = text.rows * shape.heads;
    if (state < states) return {.text = &text, .index = state};
    state -= states;
  }
  assert(false);
  return {};
}

}  // namespace

int64_t StatesOf(const AttentionShape& shape, std::span<const AttentionRows> texts) {
  int64_t states = 0;
  for (const AttentionRows& text : texts) states += text.rows * shape.heads;
  return states;
}

void PackStatesOf(const AttentionShape& shape, const StateRange& range, std::span<float> packed) {
  const int64_t dim = shape.value_dim(), stride = StateStride(dim);
  assert(std::ssize(packed) == range.count() * PackedState(dim));
  for (int64_t i = 0; i < range.count(); ++i) {
    const StatePlace place = PlaceAt(shape, range.texts, range.begin + i);
    PackStates(dim, 1, place.text->states + place.index * stride, &packed[i * PackedState(dim)]);
  }
}

void FinishPacked(const Exec& exec, const AttentionShape& shape, const StateRange& range,
                  int64_t ranks, std::span<const float> packed, std::span<const float> sink_logits,
                  MatrixView<float> out) {
  const int64_t dim = shape.value_dim(), group = shape.heads / shape.kv_heads;
  const int64_t width = PackedState(dim), stride = StateStride(dim), count = range.count();
  assert(std::ssize(packed) == ranks * count * width);
  const ProfilePart measured(exec.profile, StepPart::kAttention);
  Workspace::Scope scope(exec.workspace);
  const auto scratch = exec.workspace.Matrix<float>(exec.pool.threads(), 2 * stride);
  exec.ParallelRows(count, ranks * width, [&](int64_t i, int worker) {
    float* const total = scratch.Row(worker);
    float* const state = total + stride;
    ClearStates(dim, 1, total);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      UnpackStates(dim, 1, &packed[(rank * count + i) * width], state);
      MergeStates(exec.kernels, dim, 1, state, total);
    }
    const auto [text, place] = PlaceAt(shape, range.texts, range.begin + i);
    const int64_t token = place / group % text->rows;  // place: (KV head, token, head of its group)
    const int64_t head = place / group / text->rows * group + place % group;
    FinishState(exec.kernels, dim, sink_logits.empty() ? nullptr : &sink_logits[head], total,
                out.Row(text->first_row + token) + head * dim);
  });
}

}  // namespace godwit::ops
