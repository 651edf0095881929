// Eagle3Head: an EAGLE-3 head (arXiv 2503.01840), which predicts tokens behind the next one for
// draft tokens. It comes in a folder of its own (eagle3_folder.h), trained for one model.
//
// At position p it reads the embedding of the token there. It also reads the model's residual
// stream of p - 1 at three places, which one matrix reduces to the state h. With e =
// norm(embedding) and s = norm(h):
//
//   x = h + attention(queries, keys and values of [e; s])       (or s + ..., norm_before_residual)
//   x = x + mlp(norm(x))
//   logits = head(norm(x))        of the token at p + 1, over a smaller vocabulary
//
// A prediction behind that has x in the place of h. Position 0, before which the model read
// nothing, has no key. The keys of all others lie with the text's, one layer behind the model's
// (AttentionGeometry::predicting). So do those of a layer that comes with a model
// (DecoderSpec::prediction). Heads are trained with positions that are one less, for all alike:
// rotations, which tell differences, are the same.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/core/step.h"
#include "base/function_ref.h"
#include "model/eagle3_spec.h"
#include "model/language_model.h"
#include "ops/exec.h"
#include "ops/norm.h"
#include "tensor/weight.h"

namespace godwit {

struct Eagle3Weights {
  Weight reduce;   // [hidden, 3 * model's hidden]
  Weight query;    // [heads * head_dim, 2 * hidden]
  Weight kv;       // [2 * kv_heads * head_dim, 2 * hidden]: keys, then values
  Weight out;      // [hidden, heads * head_dim]
  Weight gate_up;  // [2 * intermediate, hidden]
  Weight down;     // [hidden, intermediate]
  Weight head;     // [draft_vocab, hidden]
  ops::NormWeights embedding_norm, state_norm, mlp_norm, norm;  // [hidden]
  // [vocab, hidden], in the head's mapping, which counts in no sum of bytes; no rows: the model's.
  Table embedding;
  std::vector<int32_t> tokens;  // [draft_vocab], the model's; empty: they are the same
};

class Eagle3Head {
 public:
  // Looks up rows of the model's embedding, as the checkpoint stores it: out [tokens, hidden].
  using ModelRows = FunctionRef<void(std::span<const int32_t> tokens, MatrixView<float> out)>;

  Eagle3Head(const Eagle3Spec& spec, Eagle3Weights weights);

  const Eagle3Spec& spec() const { return spec_; }
  int64_t bytes() const;

  // The width of the states of a row that the head reads.
  int64_t states() const { return Eagle3Spec::kStates * spec_.model_hidden; }
  // Copies those parts of the states [rows, states()] that the model's residual stream x [rows,
  // model's hidden] is behind so many layers.
  void TakeStates(const Exec& exec, int64_t layers, MatrixView<const float> x,
                  MatrixView<float> states) const;
  // Caches the keys of a step's rows, in the layer with this number. Where the row before is not
  // known, zeros stand for its states: worse drafts. Keeps the reduced states of the rows
  // (AttentionStep::KeepOutputs).
  void CacheKeys(const Exec& exec, std::span<const Segment> segments, AttentionStep& step,
                 int64_t layer, MatrixView<const float> states, ModelRows rows) const;
  // As LanguageModel::Predict, from the states that were kept for the text's last token.
  void Predict(const Exec& exec, TextCache& text, int32_t token, int64_t most, ModelRows rows,
               LanguageModel::NextPrediction next) const;

 private:
  void Embed(const Exec& exec, std::span<const int32_t> tokens, ModelRows rows,
             MatrixView<float> out) const;
  std::span<const float> KeyMeans(const TextCache& text) const;

  Eagle3Spec spec_;
  Eagle3Weights weights_;
  // Zeros: the head tells nothing about the means of its keys (AttentionInput::key_means).
  std::vector<float> key_means_;
};

}  // namespace godwit
