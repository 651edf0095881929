// For tests: a model by a clock of its own, so that draft tokens pay.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <utility>

#include "model/decoder.h"
#include "model/language_model.h"

namespace godwit {

// Only steps of the model take time, the same for any number of rows.
class TimedModel : public LanguageModel {
 public:
  explicit TimedModel(std::unique_ptr<Decoder> model) : model_(std::move(model)) {}

  static double NowMs() { return now_ms_.load(); }

  int64_t vocab_size() const override { return model_->vocab_size(); }
  int64_t hidden_size() const override { return model_->hidden_size(); }
  void Forward(const Exec& exec, std::span<const Segment> segments,
               MatrixView<float> hidden) const override {
    model_->Forward(exec, segments, hidden);
    now_ms_ += 0.5;
  }
  void Logits(const Exec& exec, MatrixView<const float> hidden,
              MatrixView<float> logits) const override {
    model_->Logits(exec, hidden, logits);
  }
  void NormedLogits(const Exec& exec, MatrixView<const float> normed,
                    MatrixView<float> logits) const override {
    model_->NormedLogits(exec, normed, logits);
  }
  bool predicts() const override { return model_->predicts(); }
  void Predict(const Exec& exec, TextCache& text, int32_t token, std::span<const float> state,
               int64_t most, NextPrediction next) const override {
    model_->Predict(exec, text, token, state, most, next);
  }

 private:
  static inline std::atomic<double> now_ms_ = 0;
  std::unique_ptr<Decoder> model_;
};

}  // namespace godwit
