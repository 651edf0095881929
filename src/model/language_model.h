// LanguageModel: tokens in, hidden states and logits out. The seam between the forward pass and
// everything that drives it; Decoder serves every family, tests/fake_model.h serves tests.
//
// Immutable and thread-safe: whatever a sequence changes lives in its policy and in the Exec.
#pragma once

#include <cstdint>
#include <span>

#include "attention/policy.h"
#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit {

// The next tokens of one sequence. Several segments are a batch; they do not see each other.
struct Segment {
  std::span<const int32_t> tokens;
  AttentionPolicy* policy;  // of this sequence, borrowed
};

class LanguageModel {
 public:
  virtual ~LanguageModel() = default;

  virtual int64_t vocab_size() const = 0;
  virtual int64_t hidden_size() const = 0;

  // One step of every segment's policy. hidden [all tokens, hidden_size]: the states after the
  // final norm, segment after segment. Throws Error(kInput) for token ids outside the vocabulary
  // and whatever a policy's Begin throws; no sequence has then advanced. So too on kCancelled.
  virtual void Forward(const Exec& exec, std::span<const Segment> segments,
                       MatrixView<float> hidden) const = 0;

  // hidden [rows, hidden_size] -> logits [rows, vocab_size].
  virtual void Logits(const Exec& exec, MatrixView<const float> hidden,
                      MatrixView<float> logits) const = 0;
};

}  // namespace godwit
