#include "engine/shared_prefix.h"

#include <algorithm>
#include <utility>

namespace godwit {

void ParkedTexts::Park(ReadText text) {
  constexpr size_t kMost = 4;
  if (texts_.size() == kMost) DropOldest();
  texts_.push_back(std::move(text));
}

bool ParkedTexts::DropOldest() {
  if (texts_.empty()) return false;
  texts_.erase(texts_.begin());
  return true;
}

SharedPrefix FindSharedPrefix(const Request& request,
                              std::span<const std::shared_ptr<Request>> running,
                              std::span<const ReadText> parked) {
  const auto& mine = request.sequence().tokens;
  SharedPrefix best;
  const auto look = [&](const TextPlan& plan, std::span<const int32_t> theirs,
                        const TextCache& cache, int64_t ask_from, bool reads_on) {
    if (!request.plan().SharesWith(plan)) return;
    const int64_t most = std::min(
        {std::ssize(mine) - 1, std::ssize(theirs), plan.ReadAlike(request.ask_from(), ask_from)});
    const int64_t alike =
        std::mismatch(mine.begin(), mine.begin() + most, theirs.begin()).first - mine.begin();
    const int64_t read = std::min(alike, cache.length());
    // What is about to be read is worth waiting for.
    const bool ready = read == alike || !reads_on;
    const int64_t shared = ready ? cache.GoesBackTo(read, request.prompt_tokens()) : alike;
    if (shared < kernels::kTileTokens || shared <= best.tokens) return;
    best = {.from = &cache, .tokens = shared, .ready = ready};
  };
  for (const auto& other : running) {
    look(other->plan(), other->sequence().tokens, *other->sequence().cache, other->ask_from(),
         other->reads_on());
  }
  for (const ReadText& text : parked) {
    look(*text.plan, text.tokens, *text.cache, text.ask_from, /*reads_on=*/false);
  }
  return best;
}

}  // namespace godwit
