#include "bench/kv_fill.h"

#include <algorithm>

#include "attention/core/rotary_step.h"
#include "attention/core/step.h"
#include "attention/make_policy.h"
#include "base/error.h"
#include "base/rng.h"

namespace godwit::bench {
namespace {

// Undoes the encoding of `positions` in the keys [positions, heads * head_dim].
void UndoRotary(const Exec& exec, const RotaryStep& positions, int64_t head_dim,
                MatrixView<float> keys) {
  const ops::RotaryTable table = positions.table();
  const int64_t pairs = table.cos.cols;
  std::vector<float> cos(pairs), sin(static_cast<size_t>(pairs));
  for (int64_t row = 0; row < keys.rows; ++row) {
    for (int64_t i = 0; i < pairs; ++i) {
      const float c = table.cos.Row(row)[i], s = table.sin.Row(row)[i];
      // The magnitude is 1, unless the encoding also scales (RotaryScaling::attention_factor).
      const float magnitude = c * c + s * s;
      cos[i] = c / magnitude;
      sin[i] = -s / magnitude;
    }
    for (int64_t at = 0; at < keys.cols; at += head_dim) {
      exec.kernels.rotate_half(cos.data(), sin.data(), pairs, keys.Row(row) + at);
    }
  }
}

}  // namespace

KvSample::KvSample(const Decoder& model, const Exec& exec, std::span<const int32_t> tokens)
    : cols_(model.spec().kv_heads * model.spec().head_dim),
      rows_(std::ssize(tokens)),
      k_(AttentionLayers(model.spec())),
      v_(k_.size()),
      index_(k_.size()) {
  const AttentionGeometry geometry = Geometry(model.spec());
  if (HasUnequalKeys(model.spec())) {
    Throw(ErrorKind::kUnsupported,
          "a cache is filled with drawn keys for models whose layers have equal heads and keys of "
          "their own");
  }
  if (geometry.key_index) index_cols_ = geometry.key_index->head_dim;
  const auto text = MakeTextCache(geometry, {.kv_type = DType::kF32, .context = rows_});
  {
    Workspace::Scope scope(exec.workspace);
    const Segment segment{.tokens = tokens, .text = text.get()};
    model.Forward(exec, {&segment, 1}, exec.workspace.Matrix<float>(rows_, model.hidden_size()));
  }
  std::vector<RotaryStep> positions;  // AttentionGeometry::rotaries
  for (const RotarySpec& rotary : geometry.rotaries) {
    positions.emplace_back().Fill(RotaryEncoding(rotary, rows_), rows_, 0);
  }
  const int64_t head_dim = model.spec().head_dim;
  constexpr int64_t kDepth = kernels::KvDepth(DType::kF32);
  for (size_t layer = 0; layer < k_.size(); ++layer) {
    k_[layer].resize(rows_ * cols_);
    if (!geometry.shape.values_from) v_[layer].resize(k_[layer].size());
    const ops::KvView kv = text->cache().View(static_cast<int64_t>(layer));
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t tile = row / kTileTokens, slot = row % kTileTokens;
      for (int64_t col = 0; col < cols_; ++col) {
        const int64_t head = col / head_dim, i = col % head_dim;
        const auto at = static_cast<size_t>(row * cols_ + col);
        const auto* keys = reinterpret_cast<const float*>(kv.Keys(head, tile));
        k_[layer][at] = keys[kernels::KeyAt(kDepth, i, slot)];
        if (v_[layer].empty()) continue;
        const auto* values = reinterpret_cast<const float*>(kv.Values(head, tile));
        v_[layer][at] = values[kernels::ValueAt(kDepth, head_dim, slot, i)];
      }
    }
    const int64_t rotary = geometry.RotaryOf(static_cast<int64_t>(layer));
    UndoRotary(exec, positions[rotary], head_dim, {k_[layer].data(), rows_, cols_, cols_});
    const bool shares = KindOf(model.spec(), static_cast<int64_t>(layer)).shares_choice;
    if (!geometry.key_index || shares) continue;
    const ops::KvView index = text->cache().IndexView(static_cast<int64_t>(layer));
    index_[layer].resize(rows_ * index_cols_);
    for (int64_t row = 0; row < rows_; ++row) {
      const auto* keys = reinterpret_cast<const float*>(index.Keys(0, row / kTileTokens));
      for (int64_t i = 0; i < index_cols_; ++i) {
        index_[layer][row * index_cols_ + i] = keys[kernels::KeyAt(kDepth, i, row % kTileTokens)];
      }
    }
    UndoRotary(exec, positions[rotary], index_cols_,
               {index_[layer].data(), rows_, index_cols_, index_cols_});
  }
}

void KvSample::Extend(TextCache& text, const Exec& exec, int64_t length, int64_t chunk_tokens,
                      uint32_t draw) const {
  while (text.length() < length) {
    const int64_t first = text.length();
    const int64_t next = text.MaxNextTokens();
    const int64_t rows =
        text.AllRanksReadNext() ? next : std::min({length - first, next, chunk_tokens});
    Workspace::Scope scope(exec.workspace);
    const auto k = exec.workspace.Matrix<float>(rows, cols_);
    const auto v = exec.workspace.Matrix<float>(v_.front().empty() ? 0 : rows, cols_);
    const auto index = exec.workspace.Matrix<float>(rows, index_cols_);
    // A step uses only the number of these tokens.
    const std::vector<int32_t> tokens(rows);
    const Segment segment{.tokens = tokens, .text = &text};
    AttentionStep step(exec, {&segment, 1});
    for (size_t layer = 0; layer < k_.size(); ++layer) {
      exec.ParallelRows(rows, 2 * cols_, [&](int64_t row) {
        const uint64_t bits = RandomBits(/*seed=*/2, layer, first + row, draw);
        const auto source = static_cast<int64_t>(bits % static_cast<uint64_t>(rows_));
        const int64_t from = source * cols_;
        std::copy_n(k_[layer].data() + from, cols_, k.Row(row));
        if (v.rows > 0) std::copy_n(v_[layer].data() + from, cols_, v.Row(row));
        if (index_[layer].empty()) return;
        std::copy_n(index_[layer].data() + source * index_cols_, index_cols_, index.Row(row));
      });
      AttentionInput input{.q = {}, .k = k, .v = v};
      if (!index_[layer].empty()) input.index_k = index;
      step.Attend(static_cast<int64_t>(layer), input, {});
    }
    step.End();
  }
}

}  // namespace godwit::bench
