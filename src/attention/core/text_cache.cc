#include "attention/core/text_cache.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/error.h"

namespace godwit {

TextCache::TextCache(const AttentionGeometry& geometry, std::unique_ptr<AttentionPolicy> policy,
                     std::shared_ptr<KvPool> pool, int64_t context, bool int8_products,
                     TextPlacement placement, std::shared_ptr<Communicator> ranks)
    : geometry_(geometry),
      policy_(std::move(policy)),
      cache_(std::move(pool)),
      states_(cache_.pool().states()),
      int8_products_(int8_products),
      placement_(std::move(placement)),
      ranks_(std::move(ranks)),
      positions_(geometry.rotaries.size()),
      tiles_(geometry.rotaries.size()),
      place_(geometry.rotaries.size()) {
  for (const RotarySpec& rotary : geometry.rotaries) rotaries_.emplace_back(rotary, context);
}

TextCache::TextCache(const TextCache& other, std::unique_ptr<AttentionPolicy> policy)
    : geometry_(other.geometry_),
      policy_(std::move(policy)),
      cache_(other.cache_.Fork()),
      states_(other.states_.Fork()),
      rotaries_(other.rotaries_),
      int8_products_(other.int8_products_),
      placement_(other.placement_),
      ranks_(other.ranks_),
      answer_(other.answer_),
      reads_(other.reads_),
      output_(other.output_),
      positions_(rotaries_.size()),
      tiles_(rotaries_.size()),
      place_(rotaries_.size()) {}

std::unique_ptr<TextCache> TextCache::Fork() const {
  return std::unique_ptr<TextCache>(new TextCache(*this, policy_->Fork()));
}

std::unique_ptr<TextCache> TextCache::Fork(std::unique_ptr<AttentionPolicy> policy) const {
  if (!HoldsSeenKeys(*policy, length())) {
    Throw(ErrorKind::kUnsupported,
          "the KV policy {} cannot continue a text of {} tokens: {} has dropped tokens that it "
          "would see",
          policy->facts().name, length(), policy_->facts().name);
  }
  std::unique_ptr<TextCache> fork(new TextCache(*this, std::move(policy)));
  fork->cache_.Drop(fork->policy_->Forgotten(length()));
  return fork;
}

std::unique_ptr<TextCache> TextCache::ForkOfContext() const {
  const int64_t context = placement_.merged_from();
  if (context == 0 || length() < context || !CanTruncate(context)) return nullptr;
  auto fork = Fork();
  fork->Truncate(context);
  fork->cache_.FillTile();
  return fork;
}

void TextCache::ContinueAs(const TextCache& text) {
  branches_.clear();
  const int64_t had = cache_.ContinueAs(text.cache_);
  if (DerivedIndex* const index = policy_->index()) index->ContinueAs(had, cache_.length());
  states_ = text.states_.Fork();
  output_ = text.output_;
  Append(0);
}

bool TextCache::HoldsSeenKeys(const AttentionPolicy& policy, int64_t length) const {
  const ops::KvRange dropped = cache_.dropped();
  if (dropped.begin >= std::min(dropped.end, length)) return true;
  const ops::KvRange forgotten = policy.Forgotten(length);
  return forgotten.begin <= dropped.begin && dropped.end <= forgotten.end;
}

void TextCache::ReserveNext(int64_t tokens) {
  if (!AllRanksKeepNext()) return cache_.Reserve(tokens);
  const auto [begin, end] = placement_.ring().RoundAround(length());
  cache_.Reserve(end - length());
  cache_.ReserveSkipped(begin);
}

void TextCache::ReleaseReserved() noexcept {
  branches_.clear();
  cache_.Truncate(length());
  states_.Release();
}

void TextCache::Reserve(int64_t tokens) {
  try {
    ReserveNext(tokens);
    states_.Reserve(tokens);
    policy_->Plan(
        {.position = length(), .rows = tokens, .phase = Phase::kPrompt, .cache = &cache_});
  } catch (...) {
    ReleaseReserved();
    throw;
  }
}

bool TextCache::CanTruncate(int64_t length) const {
  if (length == this->length()) return true;
  return 0 <= length && length < this->length() && HoldsSeenKeys(*policy_, length) &&
         AllowedRestart(length, answer_) == length && states_.CanTruncate(length);
}

int64_t TextCache::RestartPoint(int64_t length, int64_t answer) const {
  int64_t before = AllowedRestart(length, answer);
  while (!states_.CanTruncate(before)) {
    before = AllowedRestart(states_.RestartPoint(before), answer);
  }
  return CanTruncate(before) ? before : 0;
}

// Never back into a context of which other ranks have read parts.
int64_t TextCache::AllowedRestart(int64_t length, int64_t answer) const {
  const DerivedIndex* const index = policy_->index();
  const int64_t before = index == nullptr ? length : index->RestartPoint(length, answer);
  const int64_t context = placement_.merged_from();
  return context != INT64_MAX && before < context ? 0 : before;
}

TextIndex TextCache::index() const {
  const DerivedIndex* const index = policy_->index();
  return index == nullptr ? TextIndex() : index->Save();
}

int64_t TextCache::index_bytes() const {
  const DerivedIndex* const index = policy_->index();
  return index == nullptr ? 0 : index->bytes();
}

void TextCache::TruncateIndex(int64_t length) {
  if (DerivedIndex* const index = policy_->index()) index->Truncate(length);
}

void TextCache::SetQuestion(int64_t position, int64_t answer) {
  answer_ = answer;
  placement_.SetQuestion(position);
  policy_->SetQuestion({.begin = position, .answer = answer, .choosable = placement_.choosable()});
  SkipTokensOfOtherRanks();
}

void TextCache::SkipTokensOfOtherRanks() {
  const int64_t next = placement_.Reads(length()).begin;
  if (next > length()) cache_.Skip(next);
}

void TextCache::Truncate(int64_t length) {
  if (!CanTruncate(length)) {
    Throw(
        ErrorKind::kUnsupported,
        "cannot return to {} of {} tokens: the KV policy {} has dropped tokens that were seen then",
        length, this->length(), policy_->facts().name);
  }
  branches_.clear();
  if (length < this->length()) output_.clear();
  cache_.Truncate(length);
  states_.Truncate(length);
  TruncateIndex(length);
}

void TextCache::KeepOutput(int64_t row) {
  output_.clear();
  if (row_outputs_.empty()) return;
  const auto begin = row_outputs_.begin() + row * output_size_;
  output_.assign(begin, begin + output_size_);
  row_outputs_.clear();
}

void TextCache::Append(int64_t tokens) {
  if (tokens > 0 && AllRanksKeepNext()) {
    tokens = placement_.ring().RoundAround(length()).end - length();
  }
  cache_.Append(tokens);
  cache_.Drop(policy_->Forgotten(std::max<int64_t>(0, length() - kMaxRollbackTokens)));
  SkipTokensOfOtherRanks();
}

void TextCache::Accept(int64_t row) {
  const auto branch = std::ranges::find_if(
      branches_, [&](const Branch& b) { return b.first_row <= row && row < b.first_row + b.rows; });
  assert(branch != branches_.end());
  const int64_t end = branch->position + row - branch->first_row + 1;
  const auto path = std::span(branch->path).first(end - length());
  if (DerivedIndex* const index = policy_->index()) index->Accept(length(), path);
  if (branch->cache) cache_ = std::move(*branch->cache);
  branches_.clear();
  states_.Accept(row);
  KeepOutput(row);
  Append(end - length());
  cache_.Truncate(end);  // frees the memory of rows below the accepted one
  TruncateIndex(end);
}

KvStats TextCache::Stats() const {
  const ops::KvRange forgotten = policy_->Forgotten(length());
  KvStats stats{.policy = policy_->facts().name,
                .seen = length(),
                .kept = length() - (forgotten.end - forgotten.begin),
                .max_kept_tokens = policy_->facts().max_kept_tokens,
                .bytes = cache_.bytes() + index_bytes() + states_.bytes(),
                .read_bytes = reads_.bytes,
                .met_keys = reads_.met_keys,
                .file_read_bytes = cache_.file_read_bytes()};
  if (forgotten.begin < forgotten.end) stats.dropped.push_back(forgotten);
  return stats;
}

}  // namespace godwit
