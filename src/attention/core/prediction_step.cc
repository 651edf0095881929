#include "attention/core/prediction_step.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "ops/attention.h"
#include "ops/hadamard_heads.h"
#include "ops/store_keys.h"

namespace godwit {

PredictionStep::PredictionStep(const Exec& exec, TextCache& text, int64_t rows)
    : exec_(exec),
      text_(text),
      layer_(text.geometry().layers),
      rotary_(text.geometry().RotaryOf(layer_)) {
  assert(text.geometry().predicting > 0 && rows > 0 && text.ranks_ == nullptr);
  const int64_t length = text.length();
  try {
    text.cache_.Reserve(rows);
  } catch (...) {
    text.ReleaseReserved();
    throw;
  }
  const RotaryEncoding& encoding = text.rotaries_[rotary_];
  rotated_.Fill(encoding, rows, length);
  if (text.cache_.layout().centred) {
    tiles_.FillMeans(encoding, length / kTileTokens,
                     PagesFor(length + rows) - length / kTileTokens);
  }
}

PredictionStep::~PredictionStep() { text_.ReleaseReserved(); }

PredictionStep::Seen PredictionStep::SeenFrom(int64_t position) const {
  const ops::KvRange dropped = text_.cache_.dropped();
  const bool holds_all = dropped.begin >= dropped.end;
  if (text_.policy_->facts().shows_all && holds_all) return {0, 0};
  const int64_t begin =
      std::max(position + 1 - kWindow, holds_all ? 0 : std::min(dropped.end, position));
  const int64_t first_end = holds_all ? kTileTokens : std::min(dropped.begin, kTileTokens);
  if (begin <= first_end) return {0, 0};
  return {first_end, begin};
}

void PredictionStep::WriteKeys(const AttentionInput& input) {
  const int64_t length = text_.length(), position = length + next_;
  ops::StoredRows row{.to = text_.cache_.View(layer_),
                      .position = position,
                      .before = {},
                      .first_row = 0,
                      .rows = 1,
                      .positions = rotated_.table().Rows(next_, 1)};
  const KvLayout layout = text_.cache_.layout().OfLayer(layer_);
  if (layout.centred) {
    row.tiles = tiles_.table().Rows(position / kTileTokens - length / kTileTokens, 1);
  }
  ops::StoreKeys(exec_, layout, layer_, {&row, 1},
                 {.k = input.k, .v = input.v, .means = input.key_means});
}

ops::AttentionSource PredictionStep::SourceOf(const AttentionInput& input,
                                              const ops::Visible& visible,
                                              const ops::RotaryTable& positions) const {
  const ops::AttentionShape& shape = text_.geometry_.ShapeOf(layer_);
  ops::RotaryTable table = positions;
  table.query_gain = input.query_gains;
  const auto queries = exec_.workspace.Matrix<float>(shape.heads, shape.head_dim);
  ops::RotateHeadMajor(exec_, shape, input.q, table, queries);
  const ops::KvRange seen = visible.At(text_.length() + next_);
  text_.cache_.WillRead(layer_, seen);
  return {.kv = text_.cache_.View(layer_),
          .q = queries,
          .visible = visible,
          .int8_products = text_.int8_products_};
}

void PredictionStep::Attend(const AttentionInput& input, MatrixView<float> out) {
  assert(input.q.rows == 1 && input.k.rows == 1 && out.rows == 1);
  Workspace::Scope scope(exec_.workspace);
  text_.cache_.pool().BeginTurn();
  WriteKeys(input);
  const int64_t position = text_.length() + next_;
  const auto [first_end, begin] = SeenFrom(position);
  std::array<ops::AttentionSource, 2> sources;
  size_t count = 0;
  const int64_t from = text_.geometry().predicting_from;
  if (first_end > from) {
    const int64_t place = position - begin + first_end;
    place_.Fill(text_.rotaries_[rotary_], 1, place);
    sources[count] = SourceOf(input, {.begin = from, .end = first_end}, place_.table());
    sources[count++].query_place = place;
  }
  sources[count++] =
      SourceOf(input, {.begin = std::max(begin, from)}, rotated_.table().Rows(next_, 1));
  const AttentionGeometry& geometry = text_.geometry_;
  const ops::AttentionShape& shape = geometry.ShapeOf(layer_);
  const ops::AttentionRows row{
      .first_row = 0, .rows = 1, .position = position, .sources = std::span(sources).first(count)};
  ops::Attention(exec_, shape, geometry.alibi, {&row, 1}, input.sink_logits, out);
  if (text_.cache_.layout().rotated_values()) {
    ops::HadamardHeads(exec_, shape.value_dim(), out);
  }
  ++next_;
}

}  // namespace godwit
