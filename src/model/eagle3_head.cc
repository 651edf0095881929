#include "model/eagle3_head.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "attention/core/prediction_step.h"
#include "ops/activation.h"
#include "ops/copy_rows.h"
#include "ops/embedding.h"
#include "ops/linear.h"

namespace godwit {

Eagle3Head::Eagle3Head(const Eagle3Spec& spec, Eagle3Weights weights)
    : spec_(spec),
      weights_(std::move(weights)),
      key_means_(static_cast<size_t>(spec.kv_heads * spec.head_dim)) {}

int64_t Eagle3Head::bytes() const {
  int64_t bytes = 0;
  for (const Weight* weight : {&weights_.reduce, &weights_.query, &weights_.kv, &weights_.out,
                               &weights_.gate_up, &weights_.down, &weights_.head}) {
    bytes += weight->bytes();
  }
  return bytes;
}

void Eagle3Head::TakeStates(const Exec& exec, int64_t layers, MatrixView<const float> x,
                            MatrixView<float> states) const {
  for (size_t i = 0; i < spec_.behind.size(); ++i) {
    if (spec_.behind[i] != layers) continue;
    const int64_t first = static_cast<int64_t>(i) * x.cols;
    ops::CopyRows(exec, x, states.Cols(first, first + x.cols));
  }
}

void Eagle3Head::Embed(const Exec& exec, std::span<const int32_t> tokens, ModelRows rows,
                       MatrixView<float> out) const {
  if (weights_.embedding.rows > 0) {
    ops::Embed(exec, tokens, weights_.embedding, out);
  } else {
    rows(tokens, out);
  }
}

std::span<const float> Eagle3Head::KeyMeans(const TextCache& text) const {
  return text.geometry().key_means ? std::span<const float>(key_means_) : std::span<const float>();
}

void Eagle3Head::CacheKeys(const Exec& exec, std::span<const Segment> segments, AttentionStep& step,
                           int64_t layer, MatrixView<const float> states, ModelRows rows) const {
  Workspace::Scope scope(exec.workspace);
  const int64_t hidden = spec_.hidden, width = spec_.kv_heads * spec_.head_dim;
  const auto reduced = exec.workspace.Matrix<float>(states.rows, hidden);
  const auto pairs = exec.workspace.Matrix<float>(states.rows, 2 * hidden);
  const auto kv = exec.workspace.Matrix<float>(states.rows, 2 * width);
  const auto embeddings = pairs.Cols(0, hidden), before = pairs.Cols(hidden, 2 * hidden);
  ops::Linear(exec, states, weights_.reduce, reduced);
  int64_t first = 0;
  for (const Segment& segment : segments) {
    const auto count = std::ssize(segment.tokens);
    Embed(exec, segment.tokens, rows, embeddings.Rows(first, first + count));
    for (int64_t row = 0; row < count; ++row) {
      const int64_t parent = segment.parents.empty() ? row - 1 : segment.parents[row];
      std::span<const float> state = segment.text->last_output();
      if (parent >= 0) state = reduced.RowSpan(first + parent);
      const auto to = before.RowSpan(first + row);
      if (state.empty()) {
        std::ranges::fill(to, 0.0f);
      } else {
        std::ranges::copy(state, to.begin());
      }
    }
    first += count;
  }
  ops::Norm(exec, embeddings, weights_.embedding_norm, embeddings);
  ops::Norm(exec, before, weights_.state_norm, before);
  ops::Linear(exec, pairs, weights_.kv, kv);
  step.Attend(layer,
              {.q = {},
               .k = kv.Cols(0, width),
               .v = kv.Cols(width, 2 * width),
               .key_means = KeyMeans(*segments.front().text)},
              {});
  step.KeepOutputs(reduced);
}

void Eagle3Head::Predict(const Exec& exec, TextCache& text, int32_t token, int64_t most,
                         ModelRows rows, LanguageModel::NextPrediction next) const {
  const std::span<const float> state = text.last_output();
  if (state.empty()) return;
  Workspace::Scope scope(exec.workspace);
  const int64_t hidden = spec_.hidden, width = spec_.kv_heads * spec_.head_dim;
  const auto x = exec.workspace.Matrix<float>(1, hidden);
  const auto pair = exec.workspace.Matrix<float>(1, 2 * hidden);
  const auto q = exec.workspace.Matrix<float>(1, spec_.heads * spec_.head_dim);
  const auto kv = exec.workspace.Matrix<float>(1, 2 * width);
  const auto attended = exec.workspace.Matrix<float>(1, q.cols);
  const auto block = exec.workspace.Matrix<float>(1, hidden);
  const auto up = exec.workspace.Matrix<float>(1, 2 * spec_.intermediate);
  const auto logits = exec.workspace.Matrix<float>(1, spec_.draft_vocab);
  const auto of_model = exec.workspace.Matrix<float>(1, spec_.vocab);
  const auto embedding = pair.Cols(0, hidden), normed = pair.Cols(hidden, 2 * hidden);
  std::ranges::copy(state, x.RowSpan(0).begin());
  PredictionStep step(exec, text, most);
  for (int64_t i = 0; i < most; ++i) {
    Workspace::Scope of_row(exec.workspace);
    Embed(exec, {&token, 1}, rows, embedding);
    ops::Norm(exec, embedding, weights_.embedding_norm, embedding);
    ops::Norm(exec, x, weights_.state_norm, normed);
    if (spec_.norm_before_residual) ops::CopyRows(exec, normed, x);
    ops::Linear(exec, pair, weights_.query, q);
    ops::Linear(exec, pair, weights_.kv, kv);
    step.Attend({.q = q,
                 .k = kv.Cols(0, width),
                 .v = kv.Cols(width, 2 * width),
                 .key_means = KeyMeans(text)},
                attended);
    ops::Linear(exec, attended, weights_.out, block);
    ops::Add(exec, block, x);
    ops::Norm(exec, x, weights_.mlp_norm, block);
    ops::Linear(exec, block, weights_.gate_up, up);
    auto inner = ops::NewLinearRows(exec, weights_.down, 1);
    ops::ActivateGated(exec, spec_.activation, up, {&inner, 1});
    ops::Linear(exec, inner, weights_.down, block);
    ops::Add(exec, block, x);
    ops::Norm(exec, x, weights_.norm, block);
    ops::Linear(exec, block, weights_.head, logits);
    std::span<const float> found = logits.RowSpan(0);
    if (!weights_.tokens.empty()) {
      const auto all = of_model.RowSpan(0);
      std::ranges::fill(all, -INFINITY);
      for (size_t draft = 0; draft < found.size(); ++draft) {
        all[weights_.tokens[draft]] = found[draft];
      }
      found = all;
    }
    const std::optional<int32_t> chosen = next(found);
    if (!chosen) return;
    token = *chosen;
  }
}

}  // namespace godwit
