// Sliding window with re-computation: the oracle that streaming is measured against (StreamingLLM,
// figure 1.c). Every token is read in a text of its own, which holds it and the W - 1 tokens before
// it. No cache outlives a token, so a token costs what a prompt of W costs.
#pragma once

#include <functional>
#include <memory>

#include "attention/policy.h"
#include "model/language_model.h"

namespace godwit {

// A way to drive a model, not a cache: it stands in the model's place, and its policies remember
// the text.
class Recompute : public LanguageModel {
 public:
  using NewCache = std::function<std::unique_ptr<AttentionPolicy>()>;

  // The model is borrowed. window: at least 1 token. new_cache: an empty cache that keeps all of
  // `window` tokens and takes them in one step.
  Recompute(const LanguageModel& model, int64_t window, NewCache new_cache);

  // For one text. Forward takes no others, and nothing else takes these.
  std::unique_ptr<AttentionPolicy> NewPolicy() const;

  int64_t vocab_size() const override { return model_.vocab_size(); }
  int64_t hidden_size() const override { return model_.hidden_size(); }
  void Forward(const Exec& exec, std::span<const Segment> segments,
               MatrixView<float> hidden) const override;
  void Logits(const Exec& exec, MatrixView<const float> hidden,
              MatrixView<float> logits) const override {
    model_.Logits(exec, hidden, logits);
  }

 private:
  class Text;

  void Read(const Exec& exec, std::span<const int32_t> text, int64_t position,
            MatrixView<float> hidden) const;

  const LanguageModel& model_;
  int64_t window_;
  NewCache new_cache_;
};

}  // namespace godwit
