#include "attention/ranks/merge_ranks.h"

#include <algorithm>

#include "ops/attention_state.h"
#include "ops/merge_states.h"

namespace godwit {
namespace {

// The limit for the sum that all ranks send at once. A decode step stays far below it.
constexpr int64_t kMaxGatheredBytes = int64_t{64} << 20;

}  // namespace

void FinishWithRanks(const Exec& exec, Communicator& ranks, const ops::AttentionShape& shape,
                     std::span<const ops::AttentionRows> texts, std::span<const float> sink_logits,
                     MatrixView<float> out) {
  const int64_t packed = ops::PackedState(shape.value_dim());
  const auto row_bytes = packed * static_cast<int64_t>(sizeof(float));
  const int64_t most = std::max<int64_t>(1, kMaxGatheredBytes / ranks.size() / row_bytes);
  const int64_t states = ops::StatesOf(shape, texts);
  for (int64_t begin = 0; begin < states; begin += most) {
    Workspace::Scope scope(exec.workspace);
    const ops::StateRange range{texts, begin, std::min(states, begin + most)};
    const int64_t floats = range.count() * packed;
    const auto mine = exec.workspace.Matrix<float>(1, floats).RowSpan(0);
    const auto all = exec.workspace.Matrix<float>(1, ranks.size() * floats).RowSpan(0);
    ops::PackStatesOf(shape, range, mine);
    ranks.AllGather(std::as_bytes(mine), std::as_writable_bytes(all), exec.cancel);
    ops::FinishPacked(exec, shape, range, ranks.size(), all, sink_logits, out);
  }
}

}  // namespace godwit
