// LanguageModel: tokens in, hidden states and logits out. The seam between the forward pass and
// everything that drives it; Decoder serves every family, tests/fake_model.h serves tests.
//
// Immutable and thread-safe: whatever a text changes lives in its TextCache and in the Exec.
#pragma once

#include <cstdint>
#include <span>

#include "attention/core/step.h"
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
};

}  // namespace godwit
