#include "attention/core/rotary_step.h"

#include <algorithm>
#include <cassert>

namespace godwit {

MatrixView<float> RotaryStep::Resize(const RotaryEncoding& encoding, int64_t rows) {
  rows_ = rows;
  pairs_ = encoding.rotary_dim() / 2;
  const int64_t n = rows_ * pairs_;
  values_.resize(std::max(values_.size(), static_cast<size_t>(2 * n + rows_)));
  return {values_.data(), 2 * rows_, pairs_, pairs_};
}

void RotaryStep::FillMeans(const RotaryEncoding& encoding, int64_t first_tile, int64_t tiles) {
  const auto turns = Resize(encoding, tiles);
  scales_queries_ = false;
  encoding.FillMeans(first_tile * kTileTokens, kTileTokens, turns.Rows(0, tiles),
                     turns.Rows(tiles, 2 * tiles));
}

void RotaryStep::Fill(const RotaryEncoding& encoding, int64_t rows, int64_t first) {
  const auto turns = Resize(encoding, rows);
  scales_queries_ = encoding.temperature().growth != 0;
  encoding.Fill(first, turns.Rows(0, rows), turns.Rows(rows, 2 * rows));
  const int64_t n = rows_ * pairs_;
  if (!scales_queries_) return;
  for (int64_t row = 0; row < rows_; ++row) {
    values_[2 * n + row] = encoding.temperature().At(first + row);
  }
}

void RotaryStep::FillTurn(const RotaryEncoding& encoding, int64_t from, int64_t to) {
  const auto turns = Resize(encoding, 1);
  scales_queries_ = false;
  std::vector<float> ends(4 * pairs_);
  const MatrixView<float> all{ends.data(), 4, pairs_, pairs_};
  encoding.Fill(from, all.Rows(0, 1), all.Rows(1, 2));
  encoding.Fill(to, all.Rows(2, 3), all.Rows(3, 4));
  for (int64_t i = 0; i < pairs_; ++i) {
    const double cos = double{all.Row(0)[i]}, sin = double{all.Row(1)[i]};
    const double to_cos = double{all.Row(2)[i]}, to_sin = double{all.Row(3)[i]};
    // The stored key has the encoding's magnitude already.
    const double square = cos * cos + sin * sin;
    turns.Row(0)[i] = static_cast<float>((to_cos * cos + to_sin * sin) / square);
    turns.Row(1)[i] = static_cast<float>((to_sin * cos - to_cos * sin) / square);
  }
}

ops::RotaryTable RotaryStep::TableForAll(int64_t rows) const {
  assert(rows_ == 1);
  return Table(rows, 0);
}

ops::RotaryTable RotaryStep::Table(int64_t rows, int64_t stride) const {
  const float* const sines = values_.data() + rows_ * pairs_;
  return {.cos = {values_.data(), rows, pairs_, stride * pairs_},
          .sin = {sines, rows, pairs_, stride * pairs_},
          .query_scale = {sines + rows_ * pairs_, scales_queries_ ? rows : 0, 1, stride}};
}

}  // namespace godwit
