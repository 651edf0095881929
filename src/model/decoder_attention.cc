// The attention of a layer, with plain keys or with latent ones.
#include <span>

#include "model/decoder.h"
#include "ops/activation.h"
#include "ops/copy_rows.h"
#include "ops/linear.h"
#include "ops/norm.h"

namespace godwit {

void Decoder::AnyAttentionBlock(const Exec& exec, int64_t index, Attend attend,
                                MatrixView<const float> x, MatrixView<float> out,
                                bool chooses) const {
  if (spec_.latent) {
    LatentAttentionBlock(exec, index, attend, chooses, x, out);
  } else {
    AttentionBlock(exec, index, attend, x, out);
  }
  if (out.rows > 0)
    FinishBlock(exec, KindOf(spec_, index), LayerWeights(index).attention_out_norm, out);
}

// out = o(attention(q, k, v of norm(x))).
void Decoder::AttentionBlock(const Exec& exec, int64_t index, Attend attend,
                             MatrixView<const float> x, MatrixView<float> out) const {
  const DecoderLayer& layer = LayerWeights(index);
  const LayerKind& kind = KindOf(spec_, index);
  Workspace::Scope scope(exec.workspace);
  const auto normed = BlockInput(exec, kind, layer.attention_norm, x, layer.qkv);
  const auto qkv = exec.workspace.Matrix<float>(x.rows, layer.qkv.outputs);
  const auto attended = exec.workspace.Matrix<float>(out.rows, spec_.heads * kind.head_dim);

  ops::Linear(exec, normed, layer.qkv, qkv);
  AttendToHeads(exec, index, attend, qkv, attended);
  if (out.rows == 0) return;
  ops::Linear(exec, attended, layer.attention_out, out);
  if (spec_.attention_scale != 1) ops::Scale(exec, spec_.attention_scale, out);
}

void Decoder::AttendToHeads(const Exec& exec, int64_t index, Attend attend, MatrixView<float> qkv,
                            MatrixView<float> attended) const {
  const DecoderLayer& layer = LayerWeights(index);
  const LayerKind& kind = KindOf(spec_, index);
  const int64_t q_cols = spec_.heads * kind.head_dim, rows = attended.rows;
  const int64_t kv_cols = HasKeys(kind) ? kind.kv_heads * kind.head_dim : 0;
  const int64_t gates = q_cols + (kind.keys_are_values ? kv_cols : 2 * kv_cols);
  Workspace::Scope scope(exec.workspace);

  if (spec_.clip_qkv) ops::Clamp(exec, *spec_.clip_qkv, qkv);
  const auto q = qkv.Cols(0, q_cols);
  const auto k = qkv.Cols(q_cols, q_cols + kv_cols);
  auto v = qkv.Cols(gates - kv_cols, gates);
  if (kind.keys_are_values) {
    v = exec.workspace.Matrix<float>(qkv.rows, kv_cols);
    ops::CopyRows(exec, k, v);
  }
  if (rows > 0) NormQueriesOrKeys(exec, layer.q_norm, kind.head_dim, q);
  if (kv_cols > 0) NormQueriesOrKeys(exec, layer.k_norm, kind.head_dim, k);
  if (kv_cols > 0 && spec_.value_norm) ops::NormHeads(exec, layer.v_norm, kind.head_dim, v);
  std::span<const float> key_means;
  if (BiasIsKeyMean(spec_)) {
    key_means = std::span(layer.qkv.bias).subspan(q_cols, kv_cols);
  }
  attend({.q = q.Rows(0, rows),
          .k = kv_cols > 0 ? k : MatrixView<const float>(),
          .v = kv_cols > 0 ? v : MatrixView<const float>(),
          .sink_logits = layer.sink_logits,
          .key_means = key_means,
          .query_gains = layer.query_gains},
         attended);
  if (rows > 0 && spec_.gated_attention) {
    ops::MultiplyBySigmoids(exec, qkv.Cols(gates, qkv.cols), attended);
  }
}

// queries [rows, heads * cached_dim]. A key has the latent vector c, and W makes a head's plain key
// from it: q . (W c) = (q W) . c.
void Decoder::LatentQueries(const Exec& exec, const LatentWeights& w,
                            MatrixView<const float> source, MatrixView<float> queries) const {
  const LatentAttention& shape = *spec_.latent;
  Workspace::Scope scope(exec.workspace);
  const auto q = exec.workspace.Matrix<float>(source.rows, spec_.heads * shape.query_dim());
  ops::Linear(exec, source, w.query, q);
  for (int64_t head = 0; head < spec_.heads; ++head) {
    const auto of_head = q.Cols(head * shape.query_dim(), (head + 1) * shape.query_dim());
    const auto to = queries.Cols(head * shape.cached_dim(), (head + 1) * shape.cached_dim());
    ops::Linear(exec, of_head.Cols(0, shape.plain_dim), w.keys[head],
                to.Cols(shape.rotary_dim, to.cols));
    ops::CopyRows(exec, of_head.Cols(shape.plain_dim, of_head.cols), to.Cols(0, shape.rotary_dim));
  }
}

void Decoder::IndexKeys(const Exec& exec, const LatentWeights& w, bool chooses,
                        MatrixView<const float> normed, MatrixView<const float> source,
                        AttentionInput& input) const {
  const KeyIndexSpec& index = *spec_.key_index;
  const auto k = exec.workspace.Matrix<float>(normed.rows, index.head_dim);
  ops::Linear(exec, normed, w.index_key, k);
  ops::Norm(exec, k, w.index_norm, k);
  input.index_k = k;
  if (!chooses) return;
  const auto q = exec.workspace.Matrix<float>(normed.rows, index.heads * index.head_dim);
  const auto weights = exec.workspace.Matrix<float>(normed.rows, index.heads);
  ops::Linear(exec, source, w.index_query, q);
  ops::Linear(exec, normed, w.index_weights, weights);
  input.index_q = q;
  input.index_weights = weights;
}

void Decoder::LatentAttentionBlock(const Exec& exec, int64_t index, Attend attend, bool chooses,
                                   MatrixView<const float> x, MatrixView<float> out) const {
  const LatentAttention& shape = *spec_.latent;
  const DecoderLayer& layer = LayerWeights(index);
  const LatentWeights& w = layer.latent;
  const int64_t cached = shape.cached_dim(), width = cached - shape.values_from();
  Workspace::Scope scope(exec.workspace);
  const auto normed = exec.workspace.Matrix<float>(x.rows, x.cols);
  const auto queries = exec.workspace.Matrix<float>(out.rows, spec_.heads * cached);
  const auto down = exec.workspace.Matrix<float>(x.rows, cached);
  const auto k = exec.workspace.Matrix<float>(x.rows, cached);
  const auto attended = exec.workspace.Matrix<float>(out.rows, spec_.heads * width);
  const auto values = exec.workspace.Matrix<float>(out.rows, spec_.heads * shape.value_dim);

  ops::Norm(exec, x, layer.attention_norm, normed);
  MatrixView<const float> source = normed;
  if (shape.query_rank > 0 && out.rows > 0) {
    const auto narrow = exec.workspace.Matrix<float>(x.rows, shape.query_rank);
    ops::Linear(exec, normed, w.query_down, narrow);
    ops::Norm(exec, narrow, w.query_norm, narrow);
    source = narrow;
  }
  if (out.rows > 0) LatentQueries(exec, w, source, queries);
  ops::Linear(exec, normed, w.kv_down, down);
  ops::Norm(exec, down.Cols(0, shape.kv_rank), w.kv_norm, k.Cols(shape.rotary_dim, cached));
  ops::CopyRows(exec, down.Cols(shape.kv_rank, cached), k.Cols(0, shape.rotary_dim));
  AttentionInput input{.q = queries, .k = k, .v = {}};
  if (w.index_key.outputs > 0) IndexKeys(exec, w, chooses, normed, source, input);
  attend(input, attended);
  if (out.rows == 0) return;
  for (int64_t head = 0; head < spec_.heads; ++head) {
    ops::Linear(exec, attended.Cols((head + 1) * width - shape.kv_rank, (head + 1) * width),
                w.values[head], values.Cols(head * shape.value_dim, (head + 1) * shape.value_dim));
  }
  ops::Linear(exec, values, layer.attention_out, out);
}

void Decoder::NormQueriesOrKeys(const Exec& exec, const ops::NormWeights& norm, int64_t head_dim,
                                MatrixView<float> x) const {
  if (norm.weight.empty()) return;
  if (spec_.qk_norm == QkNorm::kAllHeads) return ops::Norm(exec, x, norm, x);
  ops::NormHeads(exec, norm, head_dim, x);
}

}  // namespace godwit
