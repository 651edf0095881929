#include "generate/model_text.h"

#include <cmath>

namespace godwit {

void ModelText::Follow(std::span<const int32_t> text) {
  if (released_ || std::ssize(text) <= text_tokens_) return;
  const auto known = static_cast<size_t>(text_tokens_);
  const auto same =
      std::ranges::mismatch(std::span(tokens_).subspan(known), text.subspan(known)).in2;
  const int64_t end = same - text.begin();
  if (cached() > end) GoBackTo(end);
  tokens_.resize(end);
  tokens_.insert(tokens_.end(), same, text.end());
  text_tokens_ = std::ssize(text);
}

void ModelText::ReadChunk(const Exec& exec) {
  if (released_ || !IsBehind()) return;
  Begin();
  const int64_t begin = cached();
  const int64_t end = std::min(text_tokens_, begin + parts_.chunk_tokens);
  if (end > begin && end < cache_->limit_tokens()) {
    Workspace::Scope scope(exec.workspace);
    Read(exec, end, exec.workspace.Matrix<float>(end - begin, parts_.model->hidden_size()));
  }
  if (cached() == text_tokens_ && !kept_prompt_) {
    kept_prompt_ = true;
    parts_.kept->Keep(parts_.key, tokens_, cache_->Fork());
  }
}

bool ModelText::CanDraw(int64_t text_tokens) const {
  if (released_ || text_tokens - cached_of_text() > kFewTokens) return false;
  return cache_ == nullptr || text_tokens < cache_->limit_tokens();
}

void ModelText::Draw(const Sequence& sequence, const Exec& exec, int64_t vocab, int64_t most,
                     Add add) {
  Follow(sequence.tokens);
  Begin();
  if (cached() == text_tokens_) GoBackTo(text_tokens_ - 1);
  if (IsBehind()) return;  // it had to go back further
  if (!sampler_) sampler_ = sequence.sampler;
  most = std::min(most, cache_->limit_tokens() - text_tokens_);
  Workspace::Scope scope(exec.workspace);
  const LanguageModel& model = *parts_.model;
  const auto hidden = exec.workspace.Matrix<float>(text_tokens_ - cached(), model.hidden_size());
  const auto logits = exec.workspace.Matrix<float>(1, model.vocab_size());
  const auto shared = exec.workspace.Matrix<float>(1, vocab);
  const auto known = static_cast<size_t>(std::min(vocab, model.vocab_size()));
  for (bool goes_on = most > 0; goes_on && most > 0; --most) {
    const int64_t rows = std::ssize(tokens_) - cached();
    Read(exec, std::ssize(tokens_), hidden.Rows(0, rows));
    model.Logits(exec, hidden.Rows(rows - 1, rows), logits);
    const auto row = shared.RowSpan(0);
    std::ranges::fill(std::ranges::copy(logits.RowSpan(0).first(known), row.begin()).out, row.end(),
                      -INFINITY);
    tokens_.push_back(sampler_->Sample(row, tokens_, sequence.id, std::ssize(tokens_)));
    goes_on = add(tokens_.back(), row);
  }
}

bool ModelText::Release() {
  released_ = true;
  if (cache_ == nullptr) return false;
  GoBackTo(cached_of_text());
  tokens_.resize(cached());
  auto cache = std::move(cache_);
  if (cache->length() > 0) parts_.kept->Keep(parts_.key, std::move(tokens_), std::move(cache));
  tokens_.clear();
  return true;
}

void ModelText::Begin() {
  if (cache_ != nullptr) return;
  cache_ = parts_.kept->Fork(parts_.key, std::span(tokens_).first(text_tokens_));
  if (cache_ == nullptr) cache_ = parts_.new_text();
}

void ModelText::GoBackTo(int64_t length) {
  length = cache_->RestartPoint(length, /*answer=*/INT64_MAX);
  if (length > 0) {
    cache_->Truncate(length);
  } else {
    cache_ = parts_.new_text();
  }
}

void ModelText::Read(const Exec& exec, int64_t end, MatrixView<float> hidden) {
  const Segment segment{
      .tokens = std::span<const int32_t>(tokens_).subspan(cached(), end - cached()),
      .text = cache_.get(),
      .phase = hidden.rows == 1 ? Phase::kDecode : Phase::kPrompt};
  parts_.model->Forward(exec, {&segment, 1}, hidden);
}

}  // namespace godwit
