#include "attention/merge_ranks.h"

#include <algorithm>

#include "ops/attention_state.h"

namespace godwit {
namespace {

// Of what all ranks together send at once: a step of decoding is far below.
constexpr int64_t kMostGatheredBytes = int64_t{64} << 20;

}  // namespace

void FinishWithRanks(const Exec& exec, Communicator& ranks, const ops::AttentionShape& shape,
                     const ops::AttentionRows& text, std::span<const float> sink_logits,
                     MatrixView<float> out) {
  const int64_t dim = shape.head_dim, group = shape.heads / shape.kv_heads;
  const int64_t packed = ops::PackedState(dim), stride = ops::StateStride(dim);
  const auto row_bytes = packed * static_cast<int64_t>(sizeof(float));
  const int64_t most = std::max<int64_t>(1, kMostGatheredBytes / ranks.size() / row_bytes);
  const int64_t states = text.rows * shape.heads;
  for (int64_t begin = 0; begin < states; begin += most) {
    Workspace::Scope scope(exec.workspace);
    const int64_t count = std::min(most, states - begin);
    const auto mine = exec.workspace.Matrix<float>(1, count * packed).RowSpan(0);
    const auto all = exec.workspace.Matrix<float>(1, ranks.size() * count * packed).RowSpan(0);
    const auto scratch = exec.workspace.Matrix<float>(exec.pool.threads(), 2 * stride);
    ops::PackStates(dim, count, text.states + begin * stride, mine.data());
    ranks.AllGather(std::as_bytes(mine), std::as_writable_bytes(all), exec.cancel);
    exec.ParallelRows(count, ranks.size() * packed, [&](int64_t i, int worker) {
      float* const total = scratch.Row(worker);
      float* const state = total + stride;
      ops::ClearStates(dim, 1, total);
      for (int64_t rank = 0; rank < ranks.size(); ++rank) {
        ops::UnpackStates(dim, 1, &all[static_cast<size_t>((rank * count + i) * packed)], state);
        ops::MergeStates(exec.kernels, dim, 1, state, total);
      }
      const int64_t place = begin + i;  // (KV head, token, head of its group)
      const int64_t token = place / group % text.rows;
      const int64_t head = place / group / text.rows * group + place % group;
      ops::FinishState(exec.kernels, dim,
                       sink_logits.empty() ? nullptr : &sink_logits[static_cast<size_t>(head)],
                       total, out.Row(text.first_row + token) + head * dim);
    });
  }
}

}  // namespace godwit
