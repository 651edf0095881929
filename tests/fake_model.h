// FakeModel: a LanguageModel whose next token is a function of the last one and its position. Tests
// of code that drives a model need no weights and know every logit.
//
// It steps through texts as a real model does, checks token ids, and notes every step. No layer
// attends: cached keys and values are never read. Not thread-safe, unlike real models.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "attention/make_policy.h"
#include "base/error.h"
#include "model/language_model.h"
#include "model/spec.h"

namespace godwit {

class FakeModel : public LanguageModel {
 public:
  using Next = std::function<int32_t(int32_t token, int64_t position)>;

  // The tokens that one segment read in one step.
  struct Read {
    int64_t position;  // of the first token
    std::vector<int32_t> tokens;
  };

  FakeModel(int64_t vocab, Next next) : vocab_(vocab), next_(std::move(next)) {}

  // Called within every step: a place to throw or to cancel.
  std::function<void()> on_step;
  // Every logit but the next token's, which is 0. The flatter the logits, the more a sampler
  // varies.
  float other_logits = -20;

  const std::vector<Read>& reads() const { return reads_; }
  // The segments of the step in progress.
  std::span<const Segment> segments() const { return segments_; }

  // The spec of Geometry(), for engines.
  static DecoderSpec Spec(int64_t vocab, int64_t max_context) {
    DecoderSpec spec;
    spec.vocab_size = vocab;
    spec.layers = spec.heads = spec.kv_heads = spec.head_dim = 1;
    spec.max_context = max_context;
    return spec;
  }

  // The geometry for MakeTextCache: one layer, one head of one dimension.
  static AttentionGeometry Geometry() {
    return {.layers = 1,
            .shape = {.heads = 1, .kv_heads = 1, .head_dim = 1, .scale = 1},
            .windows = {0}};
  }

  int64_t vocab_size() const override { return vocab_; }
  int64_t hidden_size() const override { return 1; }

  void Forward(const Exec& exec, std::span<const Segment> segments,
               MatrixView<float> hidden) const override {
    Workspace::Scope scope(exec.workspace);
    AttentionStep step(exec, segments);
    int64_t row = 0;
    for (const Segment& segment : segments) {
      for (const int32_t token : segment.tokens) {
        if (token < 0 || token >= vocab_) {
          Throw(ErrorKind::kInput, "token id {} is outside the vocabulary of {}", token, vocab_);
        }
        hidden.Row(row)[0] = static_cast<float>(next_(token, step.PositionOf(row)));
        ++row;
      }
    }
    segments_ = segments;
    if (on_step) on_step();
    if (exec.cancel != nullptr) exec.cancel->ThrowIfCancelled();
    for (const Segment& segment : segments) {
      reads_.push_back({segment.text->length(), {segment.tokens.begin(), segment.tokens.end()}});
    }
    step.End();
  }

  // The same as Logits: there is no norm.
  void NormedLogits(const Exec& exec, MatrixView<const float> normed,
                    MatrixView<float> logits) const override {
    Logits(exec, normed, logits);
  }

  void Logits(const Exec& exec, MatrixView<const float> hidden,
              MatrixView<float> logits) const override {
    if (exec.cancel != nullptr) exec.cancel->ThrowIfCancelled();
    for (int64_t row = 0; row < hidden.rows; ++row) {
      for (float& logit : logits.RowSpan(row)) logit = other_logits;
      logits.Row(row)[static_cast<int64_t>(hidden.Row(row)[0])] = 0;
    }
  }

 private:
  int64_t vocab_;
  Next next_;
  mutable std::vector<Read> reads_;
  mutable std::span<const Segment> segments_;
};

}  // namespace godwit
