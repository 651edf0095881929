#include "attention/rotary_step.h"

#include <algorithm>

namespace godwit {

void RotaryStep::Fill(const RotaryEncoding& encoding, int64_t tokens, int64_t first) {
  tokens_ = tokens;
  rows_ = tokens;
  pairs_ = encoding.rotary_dim() / 2;
  const int64_t n = rows_ * pairs_;
  values_.resize(std::max(values_.size(), static_cast<size_t>(2 * n)));
  encoding.Fill(first, {values_.data(), rows_, pairs_, pairs_},
                {values_.data() + n, rows_, pairs_, pairs_});
}

void RotaryStep::FillConstant(const RotaryEncoding& encoding, int64_t tokens, int64_t position) {
  Fill(encoding, 1, position);
  tokens_ = tokens;
}

ops::RotaryTable RotaryStep::table() const {
  const int64_t stride = rows_ == 1 ? 0 : pairs_;
  return {{values_.data(), tokens_, pairs_, stride},
          {values_.data() + rows_ * pairs_, tokens_, pairs_, stride}};
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
