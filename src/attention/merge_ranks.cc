#include "attention/merge_ranks.h"

#include <algorithm>

#include "ops/attention_state.h"

namespace godwit {
namespace {

// The limit for the sum that all ranks send at once. A decode step stays far below it.
constexpr int64_t kMaxGatheredBytes = int64_t{64} << 20;

}  // namespace

void FinishWithRanks(const Exec& exec, Communicator& ranks, const ops::AttentionShape& shape,
                     std::span<const ops::AttentionRows> texts, std::span<const float> sink_logits,
                     MatrixView<float> out) {
  const int64_t dim = shape.value_dim(), group = shape.heads / shape.kv_heads;
  const int64_t packed = ops::PackedState(dim), stride = ops::StateStride(dim);
  const auto row_bytes = packed * static_cast<int64_t>(sizeof(float));
  const int64_t most = std::max<int64_t>(1, kMaxGatheredBytes / ranks.size() / row_bytes);
  Workspace::Scope all_texts(exec.workspace);
  // The number of each text's first state among the states of all texts.
  const auto firsts = exec.workspace.Matrix<int64_t>(1, std::ssize(texts)).RowSpan(0);
  int64_t states = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    firsts[i] = states;
    states += texts[i].rows * shape.heads;
  }
  const auto text_with = [&](int64_t state) {
    return static_cast<size_t>(std::ranges::upper_bound(firsts, state) - firsts.begin()) - 1;
  };
  for (int64_t begin = 0; begin < states; begin += most) {
    Workspace::Scope scope(exec.workspace);
    const int64_t count = std::min(most, states - begin);
    const auto mine = exec.workspace.Matrix<float>(1, count * packed).RowSpan(0);
    const auto all = exec.workspace.Matrix<float>(1, ranks.size() * count * packed).RowSpan(0);
    const auto scratch = exec.workspace.Matrix<float>(exec.pool.threads(), 2 * stride);
    for (int64_t i = 0; i < count; ++i) {
      const size_t text = text_with(begin + i);
      ops::PackStates(dim, 1, texts[text].states + (begin + i - firsts[text]) * stride,
                      &mine[i * packed]);
    }
    ranks.AllGather(std::as_bytes(mine), std::as_writable_bytes(all), exec.cancel);
    const ProfilePart measured(exec.profile, StepPart::kAttention);
    exec.ParallelRows(count, ranks.size() * packed, [&](int64_t i, int worker) {
      float* const total = scratch.Row(worker);
      float* const state = total + stride;
      ops::ClearStates(dim, 1, total);
      for (int64_t rank = 0; rank < ranks.size(); ++rank) {
        ops::UnpackStates(dim, 1, &all[(rank * count + i) * packed], state);
        ops::MergeStates(exec.kernels, dim, 1, state, total);
      }
      const size_t of = text_with(begin + i);
      const ops::AttentionRows& text = texts[of];
      const int64_t place = begin + i - firsts[of];  // (KV head, token, head of its group)
      const int64_t token = place / group % text.rows;
      const int64_t head = place / group / text.rows * group + place % group;
      ops::FinishState(exec.kernels, dim, sink_logits.empty() ? nullptr : &sink_logits[head], total,
                       out.Row(text.first_row + token) + head * dim);
    });
  }
}

}  // namespace godwit
