// LanguageModel: tokens in, hidden states and logits out. The seam between the forward pass and
// everything that drives it; Decoder serves every family, tests/fake_model.h serves tests.
//
// Immutable and thread-safe: whatever a text changes lives in its TextCache and in the Exec.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "attention/core/step.h"
#include "base/function_ref.h"
#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit {

class LanguageModel {
 public:
  virtual ~LanguageModel() = default;

  virtual int64_t vocab_size() const = 0;
  virtual int64_t hidden_size() const = 0;

  // One step of every segment's text. hidden [all tokens, hidden_size]: the states before the final
  // norm, segment after segment. Throws Error(kInput) for token ids outside the vocabulary and
  // whatever AttentionStep throws; no text has then advanced. So too on kCancelled.
  virtual void Forward(const Exec& exec, std::span<const Segment> segments,
                       MatrixView<float> hidden) const = 0;

  // hidden [rows, hidden_size], as Forward has them -> logits [rows, vocab_size].
  virtual void Logits(const Exec& exec, MatrixView<const float> hidden,
                      MatrixView<float> logits) const = 0;
  // The same of states that are normalised, and of the first logits.cols tokens alone: of all, or
  // a multiple of 64.
  virtual void NormedLogits(const Exec& exec, MatrixView<const float> normed,
                            MatrixView<float> logits) const = 0;

  // Whether the model has a layer that predicts tokens (DecoderSpec::predicts), or a head beside
  // it (DecoderSpec::eagle3).
  virtual bool predicts() const { return false; }
  // The choice of a token from its logits [vocab], with which predictions go on; none: they end.
  using NextPrediction = FunctionRef<std::optional<int32_t>(std::span<const float> logits)>;
  // Predicts, one after the other, the tokens behind `token`, which comes next in the text. state
  // [hidden_size]: that out of which `token` was chosen, as Forward has it. At most `most` tokens,
  // 1 or more. The text stays as it is, with draft tokens or without. Needs predicts(), and a text
  // on one rank. Throws Error(kMemory), and kCancelled.
  virtual void Predict(const Exec& /*exec*/, TextCache& /*text*/, int32_t /*token*/,
                       std::span<const float> /*state*/, int64_t /*most*/,
                       NextPrediction /*next*/) const {}
};

}  // namespace godwit
