#include "engine/saved_texts.h"

#include <algorithm>
#include <utility>

#include "attention/core/restore_text.h"
#include "base/error.h"

namespace godwit {
namespace {

constexpr const char* kSaving = "saving";

// A context that ranks share ends anywhere in a tile, and snapshots have whole tiles. Any token
// fills it up, since a snapshot's facts tell where the context ends.
std::vector<int32_t> FillTile(std::span<const int32_t> context) {
  std::vector<int32_t> tokens(context.begin(), context.end());
  tokens.resize(PagesFor(std::ssize(tokens)) * kTileTokens);
  return tokens;
}

}  // namespace

SavedTexts::SavedTexts(const std::filesystem::path& folder, int64_t bytes, int64_t save_tokens,
                       Notice notice)
    : folder_(folder, bytes),
      save_tokens_(save_tokens),
      notice_(std::move(notice)),
      writer_([this](std::stop_token stop) { Work(std::move(stop)); }) {}

SavedTexts::~SavedTexts() = default;

std::unique_ptr<TextCache> SavedTexts::Restore(const TextPlan& plan,
                                               std::span<const int32_t> tokens, int64_t known,
                                               int64_t question_begin, int64_t answer) {
  const int64_t most =
      std::min(std::ssize(tokens) - 1, plan.QuestionIndependentTokens(question_begin));
  if (most < known + kTileTokens) return nullptr;
  return RestoreFirst(plan, tokens.first(most), known, question_begin, answer);
}

int64_t SavedTexts::Look(const TextPlan& plan, std::span<const int32_t> tokens,
                         int64_t question_begin) {
  const int64_t most =
      std::min(std::ssize(tokens) - 1, plan.QuestionIndependentTokens(question_begin));
  if (most < kTileTokens || plan.ranks() != nullptr) return 0;
  const auto pieces = folder_.Longest(plan.facts(question_begin), tokens.first(most));
  return pieces.empty() ? 0 : pieces.back().end;
}

std::unique_ptr<TextCache> SavedTexts::RestoreAll(const TextPlan& plan,
                                                  std::span<const int32_t> tokens,
                                                  int64_t question_begin) {
  return RestoreFirst(plan, tokens, /*known=*/0, question_begin, /*answer=*/std::ssize(tokens));
}

std::unique_ptr<TextCache> SavedTexts::RestoreFirst(const TextPlan& plan,
                                                    std::span<const int32_t> tokens, int64_t known,
                                                    int64_t question_begin, int64_t answer) {
  const SnapshotFacts facts = plan.facts(question_begin);
  std::vector<int32_t> filled;
  if (plan.ranks() != nullptr) {
    filled = FillTile(tokens);
    tokens = filled;
  }
  const auto pieces = folder_.Longest(facts, tokens);
  if (plan.ranks() == nullptr) {
    ExplainRereading(facts, tokens, pieces.empty() ? 0 : pieces.back().end);
  }
  std::unique_ptr<TextCache> cache;
  int64_t taken = 0;
  if (!pieces.empty() && pieces.back().end > known) {
    cache = plan.NewText();
    cache->SetQuestion(question_begin, answer);
    taken = RestoreText(folder_, pieces, answer, *cache);
    if (plan.all_ranks() != nullptr && !Verify(*cache)) taken = 0;
  }
  SayProblems();
  return taken > known ? std::move(cache) : nullptr;
}

// Whether `other` makes `text` unnecessary. A policy that forgets keeps fewer of the same tiles
// later, and an earlier question goes on from the earlier state. The folder keeps only the last of
// texts that forget.
bool SavedTexts::IsEvictedBefore(const Text& text, const Text& other) {
  const auto tiles = [](const Text& of) { return WholeTiles(std::ssize(of.tokens)); };
  const auto kept_from = [](const Text& of) { return of.cache->cache().dropped().end; };
  return (text.keep_as.empty() || text.keep_as == other.keep_as) && text.facts == other.facts &&
         text.tokens.size() <= other.tokens.size() &&
         (kept_from(text) == kept_from(other) ||
          (kept_from(text) > 0 && tiles(text) < tiles(other))) &&
         std::ranges::equal(text.tokens, std::span(other.tokens).first(text.tokens.size()));
}

void SavedTexts::Save(std::shared_ptr<const TextPlan> plan, std::span<const int32_t> tokens,
                      const TextCache& cache, int64_t question_begin, const std::string& keep_as) {
  if (!cache.policy().facts().keys_suffice) return;
  const int64_t length = std::min(
      {std::ssize(tokens), cache.length(), plan->QuestionIndependentTokens(question_begin)});
  if (length < kTileTokens) return;
  Text text{.plan = std::move(plan),
            .facts = {},
            .tokens = {tokens.begin(), tokens.begin() + length},
            .cache = nullptr,
            .keep_as = keep_as};
  text.facts = text.plan->facts(question_begin);
  if (text.plan->ranks() == nullptr) {
    text.cache = cache.Fork();
  } else {
    text.cache = cache.ForkOfContext();
    if (text.cache == nullptr) return;
    text.tokens = FillTile(text.tokens);
  }
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(waiting_, [&](const Text& other) { return IsEvictedBefore(other, text); });
    waiting_.push_back(std::move(text));
  }
  changed_.notify_all();
}

bool SavedTexts::Wait() {
  std::unique_lock lock(mutex_);
  if (waiting_.empty() && !busy_) return false;
  changed_.wait(lock, [&] { return waiting_.empty() && !busy_; });
  return true;
}

void SavedTexts::Work(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, stop, [&] { return !waiting_.empty(); });
    if (waiting_.empty()) return;
    busy_ = true;
    {
      const Text text = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      SaveOne(text);
    }
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

void SavedTexts::SaveOne(const Text& text) {
  try {
    folder_.Save(text.facts, text.plan->label(), text.tokens, text.cache->cache(),
                 &text.cache->states());
    folder_.SaveIndex(text.facts, text.tokens, text.cache->index());
    if (!text.keep_as.empty()) {
      const auto pieces = folder_.Longest(text.facts, text.tokens);
      if (!pieces.empty()) folder_.Pin(text.keep_as, pieces.back().name);
    }
    const std::lock_guard lock(saying_);
    said_.erase(kSaving);
  } catch (const DamagedSnapshot& damage) {
    Remove(damage);
  } catch (const std::exception& error) {
    Say(kSaving, fmt::format("a text could not be saved: {}", error.what()));
  }
  SayProblems();
}

// Tells users why a text that was saved is read again.
void SavedTexts::ExplainRereading(const SnapshotFacts& mine, std::span<const int32_t> tokens,
                                  int64_t found) {
  if (2 * found >= std::ssize(tokens)) return;
  const SnapshotFolder::OtherFactsMatch other = folder_.LongestByOtherFacts(mine, tokens);
  if (other.tokens <= 2 * found || other.tokens < std::ssize(tokens) / 2) return;
  std::string differ;
  const auto add = [&](const std::string& name) {
    const std::string its = FactNamed(other.facts, name), ours = FactNamed(mine, name);
    if (its == ours) return;
    differ += fmt::format("{}{} {}, not {}", differ.empty() ? "" : ", ", name,
                          its.empty() ? "none" : its, ours.empty() ? "none" : ours);
  };
  for (const auto& [name, value] : mine) add(name);
  for (const auto& [name, value] : other.facts) {
    if (FactNamed(mine, name).empty()) add(name);
  }
  Say("otherwise " + differ,
      fmt::format(
          "{} tokens of this text are saved with other settings ({}), so they are processed again",
          other.tokens, differ));
}

bool SavedTexts::Verify(const TextCache& cache) {
  try {
    cache.cache().WillReadAll({0, cache.length()});
    return true;
  } catch (const DamagedSnapshot& damage) {
    Remove(damage);
    return false;
  }
}

void SavedTexts::Remove(const DamagedSnapshot& damage) {
  folder_.RemoveDamaged(damage);
  SayProblems();
}

void SavedTexts::SayProblems() {
  for (const auto& problem : folder_.TakeProblems()) {
    Say(problem.file.native(),
        fmt::format("a saved text is unusable and will be computed again: {}", problem.message));
  }
}

void SavedTexts::Say(const std::string& cause, const std::string& message) {
  const std::lock_guard lock(saying_);
  if (said_.insert(cause).second && notice_) notice_(message);
}

}  // namespace godwit
