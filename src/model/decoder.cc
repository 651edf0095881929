#include "model/decoder.h"

#include <cassert>
#include <utility>

#include "base/error.h"
#include "ops/activation.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/pack_weight.h"

namespace godwit {

Decoder::Decoder(DecoderSpec spec, DecoderWeights weights)
    : spec_(std::move(spec)), weights_(std::move(weights)) {}

int64_t Decoder::weight_bytes() const {
  const Weight& head = weights_.head;
  int64_t bytes =
      weights_.embedding.data.bytes() + ops::PackedBytes(head.dtype, head.outputs, head.inputs);
  for (const DecoderLayer& layer : weights_.layers) {
    for (const Weight* weight : {&layer.qkv, &layer.attention_out, &layer.up, &layer.down}) {
      bytes += ops::PackedBytes(weight->dtype, weight->outputs, weight->inputs);
    }
  }
  return bytes;
}

// This page is the model. x [tokens, hidden] runs through the layers; every segment's tokens are
// rows of it, and only attention tells the segments apart.
void Decoder::Forward(const Exec& exec, std::span<const Segment> segments,
                      MatrixView<float> hidden) const {
  Workspace::Scope scope(exec.workspace);
  const auto x = exec.workspace.Matrix<float>(hidden.rows, spec_.hidden_size);
  const auto attention = exec.workspace.Matrix<float>(hidden.rows, spec_.hidden_size);
  const auto mlp = exec.workspace.Matrix<float>(hidden.rows, spec_.hidden_size);

  EmbedTokens(exec, segments, x);
  for (const Segment& segment : segments) {
    segment.policy->Begin(static_cast<int64_t>(segment.tokens.size()));
  }
  for (int64_t i = 0; i < spec_.layers; ++i) {
    const DecoderLayer& layer = weights_.layers[static_cast<size_t>(i)];
    AttentionBlock(exec, i, segments, x, attention);
    if (spec_.topology == Topology::kSequential) {
      ops::Add(exec, attention, x);
      MlpBlock(exec, layer, x, mlp);
    } else {
      MlpBlock(exec, layer, x, mlp);
      ops::Add(exec, attention, x);
    }
    ops::Add(exec, mlp, x);
  }
  ops::Norm(exec, x, weights_.final_norm, hidden);
  for (const Segment& segment : segments) segment.policy->End();
}

void Decoder::EmbedTokens(const Exec& exec, std::span<const Segment> segments,
                          MatrixView<float> x) const {
  int64_t row = 0;
  for (const Segment& segment : segments) {
    for (const int32_t token : segment.tokens) {
      if (token < 0 || token >= spec_.vocab_size) {
        Throw(ErrorKind::kInput, "token id {} is outside the model's vocabulary of {}", token,
              spec_.vocab_size);
      }
    }
    const auto rows = x.Rows(row, row + static_cast<int64_t>(segment.tokens.size()));
    if (spec_.tied_head) {
      ops::EmbedTied(exec, segment.tokens, weights_.head, rows);
    } else {
      ops::Embed(exec, segment.tokens, weights_.embedding, rows);
    }
    row += rows.rows;
  }
  assert(row == x.rows);
}

// out = o(attention(q, k, v of norm(x))).
void Decoder::AttentionBlock(const Exec& exec, int64_t index, std::span<const Segment> segments,
                             MatrixView<const float> x, MatrixView<float> out) const {
  const DecoderLayer& layer = weights_.layers[static_cast<size_t>(index)];
  const int64_t q_cols = spec_.heads * spec_.head_dim;
  const int64_t kv_cols = spec_.kv_heads * spec_.head_dim;

  Workspace::Scope scope(exec.workspace);
  const auto normed = ops::NewLinearInput(exec, layer.qkv, x.rows);
  const auto qkv = exec.workspace.Matrix<float>(x.rows, q_cols + 2 * kv_cols);
  const auto attended = exec.workspace.Matrix<float>(x.rows, q_cols);

  ops::Norm(exec, x, layer.attention_norm, normed);
  ops::Linear(exec, normed, layer.qkv, qkv);
  if (spec_.clip_qkv) ops::Clamp(exec, *spec_.clip_qkv, qkv);
  const auto q = qkv.Cols(0, q_cols);
  const auto k = qkv.Cols(q_cols, q_cols + kv_cols);
  const auto v = qkv.Cols(q_cols + kv_cols, qkv.cols);
  if (spec_.qk_norm) {
    ops::NormHeads(exec, layer.q_norm, q);
    ops::NormHeads(exec, layer.k_norm, k);
  }
  int64_t row = 0;
  for (const Segment& segment : segments) {
    const int64_t end = row + static_cast<int64_t>(segment.tokens.size());
    segment.policy->Attend(index,
                           {.q = q.Rows(row, end),
                            .k = k.Rows(row, end),
                            .v = v.Rows(row, end),
                            .sink_logits = layer.sink_logits},
                           exec, attended.Rows(row, end));
    row = end;
  }
  ops::Linear(exec, attended, layer.attention_out, out);
}

// out = down(activation(up(norm(x)))), or the gated form.
void Decoder::MlpBlock(const Exec& exec, const DecoderLayer& layer, MatrixView<const float> x,
                       MatrixView<float> out) const {
  Workspace::Scope scope(exec.workspace);
  const auto normed = ops::NewLinearInput(exec, layer.up, x.rows);
  const auto up = exec.workspace.Matrix<float>(x.rows, layer.up.outputs);
  const auto inner = ops::NewLinearInput(exec, layer.down, x.rows);

  const bool shared = spec_.topology == Topology::kParallelSharedNorm;
  ops::Norm(exec, x, shared ? layer.attention_norm : layer.mlp_norm, normed);
  ops::Linear(exec, normed, layer.up, up);
  if (spec_.mlp.gated) {
    ops::ActivateGated(exec, spec_.mlp.activation, up, inner);
  } else {
    ops::Activate(exec, spec_.mlp.activation, up, inner);
  }
  ops::Linear(exec, inner, layer.down, out);
}

void Decoder::Logits(const Exec& exec, MatrixView<const float> hidden,
                     MatrixView<float> logits) const {
  ops::Linear(exec, hidden, weights_.head, logits);
}

}  // namespace godwit
