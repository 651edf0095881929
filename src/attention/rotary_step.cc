#include "attention/rotary_step.h"

#include <algorithm>

namespace godwit {

void RotaryStep::Fill(const RotaryEncoding& encoding, int64_t tokens, int64_t first, int64_t step) {
  tokens_ = tokens;
  pairs_ = encoding.rotary_dim() / 2;
  const int64_t n = tokens * pairs_;
  values_.resize(std::max(values_.size(), static_cast<size_t>(2 * n)));
  encoding.Fill(first, step, {values_.data(), tokens, pairs_, pairs_},
                {values_.data() + n, tokens, pairs_, pairs_});
}

ops::RotaryTable RotaryStep::table() const {
  return {{values_.data(), tokens_, pairs_, pairs_},
          {values_.data() + tokens_ * pairs_, tokens_, pairs_, pairs_}};
}

MatrixView<const float> RotateQueries(const Exec& exec, const ops::AttentionShape& shape,
                                      MatrixView<const float> q, const RotaryStep& step) {
  const auto rotated = exec.workspace.Matrix<float>(q.rows * shape.heads, shape.head_dim);
  ops::RotateHeadMajor(exec, shape, q, step.table(), rotated);
  return rotated;
}

MatrixView<const float> RotateKeys(const Exec& exec, const ops::AttentionShape& shape,
                                   MatrixView<const float> k, const RotaryStep& step) {
  ops::AttentionShape keys = shape;
  keys.heads = shape.kv_heads;
  return RotateQueries(exec, keys, k, step);
}

}  // namespace godwit
