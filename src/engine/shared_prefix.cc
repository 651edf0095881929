#include "engine/shared_prefix.h"

#include <algorithm>
#include <utility>

namespace godwit {

namespace {

// Whether every text that can go on from `other` can also go on from `text`.
bool BeginsWith(const ReadText& text, const ReadText& other) {
  return text.plan->SharesWith(*other.plan) && text.question_begin == other.question_begin &&
         text.cache->length() >= other.cache->length() &&
         text.cache->CanTruncate(other.cache->length()) &&
         std::ranges::mismatch(other.tokens, text.tokens).in1 == other.tokens.end();
}

// The cost of reading a text, in tokens at a text's beginning. Behind many others, a token takes
// longer.
double CostOf(const ReadText& text) {
  constexpr double kDepth = 16384;  // attention takes as long as all else here
  const auto tokens = static_cast<double>(text.cache->length());
  return tokens * (1 + tokens / 2 / kDepth);
}

}  // namespace

void ParkedTexts::Park(ReadText text) {
  constexpr size_t kMost = 1024;  // each request looks at the beginnings of all
  StopKeeping(text.keep_as);
  std::erase_if(texts_, [&](const ReadText& other) {
    return other.keep_as.empty() && BeginsWith(text, other);
  });
  if (texts_.size() == kMost) Drop(INT64_MAX);
  texts_.push_back(std::move(text));
}

void ParkedTexts::Use(const TextCache* cache) {
  const auto used =
      std::ranges::find_if(texts_, [&](const ReadText& text) { return text.cache.get() == cache; });
  if (used != texts_.end()) std::rotate(used, used + 1, texts_.end());
}

// A text is less likely to be used the longer it was unused. Memory beyond the need counts for
// nothing: small texts meet a small need, and large texts stay.
bool ParkedTexts::Drop(int64_t bytes) {
  auto least = texts_.end();
  double min_loss = 0;
  for (auto text = texts_.begin(); text != texts_.end(); ++text) {
    if (!text->keep_as.empty()) continue;
    const auto age = static_cast<double>(texts_.end() - text);
    const int64_t held = text->cache->cache().bytes() + text->cache->states().bytes();
    const int64_t gain = std::max<int64_t>(1, std::min(held, bytes));
    const double loss = CostOf(*text) / age / static_cast<double>(gain);
    if (least != texts_.end() && loss >= min_loss) continue;
    least = text;
    min_loss = loss;
  }
  if (least == texts_.end()) return false;
  texts_.erase(least);
  return true;
}

void ParkedTexts::StopKeeping(std::string_view name) {
  for (ReadText& text : texts_) {
    if (text.keep_as == name) text.keep_as.clear();
  }
}

std::unique_ptr<TextCache> SharedPrefix::Take() const {
  auto cache = from->Fork();
  cache->Truncate(tokens);
  return cache;
}

SharedPrefix FindSharedPrefix(const Request& request,
                              std::span<const std::shared_ptr<Request>> running,
                              std::span<const ReadText> parked) {
  const auto& mine = request.sequence().tokens;
  SharedPrefix best{.tokens = request.sequence().cache->length()};
  const auto look = [&](int64_t ticket, const TextPlan& plan, std::span<const int32_t> theirs,
                        const TextCache& cache, int64_t question_begin, bool reads_on,
                        int64_t context_left) {
    if (!request.plan().SharesWith(plan)) return;
    const int64_t most = std::min({std::ssize(mine) - 1, std::ssize(theirs),
                                   plan.ReusableTokens(request.question_begin(), question_begin)});
    const int64_t alike =
        std::mismatch(mine.begin(), mine.begin() + most, theirs.begin()).first - mine.begin();
    // A context that ranks share serves others as a whole.
    if (plan.ranks() != nullptr && alike < question_begin) return;
    const int64_t read = context_left > 0 ? 0 : std::min(alike, cache.length());
    // A beginning that another request is about to read is worth waiting for.
    const bool ready = read == alike || !reads_on;
    const int64_t shared = ready ? cache.RestartPoint(read, request.prompt_tokens()) : alike;
    if (shared < kTileTokens || shared <= best.tokens) return;
    best = {.from = &cache, .ticket = ticket, .tokens = shared, .ready = ready};
  };
  for (const auto& other : running) {
    look(other->ticket, other->plan(), other->sequence().tokens, *other->sequence().cache,
         other->question_begin(), other->reads_on(), other->context_left);
  }
  for (const ReadText& text : parked) {
    look(text.ticket, *text.plan, text.tokens, *text.cache, text.question_begin,
         /*reads_on=*/false, /*context_left=*/0);
  }
  return best;
}

}  // namespace godwit
