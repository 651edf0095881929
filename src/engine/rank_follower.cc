#include "engine/rank_follower.h"

#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/shared_prefix.h"
#include "generate/step_together.h"

namespace godwit {

RankFollower::RankFollower(const ServedModel& served, const LanguageModel& model, SavedTexts* saved,
                           NewStrategy new_strategy)
    : served_(served),
      model_(model),
      saved_(saved),
      new_strategy_(std::move(new_strategy)),
      ranks_(*served.placement.all) {}

void RankFollower::Follow(const Exec& exec,
                          const std::function<void(std::span<const int32_t>)>& on_forgotten) {
  const auto forget = [&](std::map<int64_t, Text>::iterator text) {
    if (on_forgotten) on_forgotten(text->second.sequence.tokens);
    return texts_.erase(text);
  };
  while (true) {
    RankCommand command = HearRankZero(ranks_);
    if (command.save) Save(*command.save);
    for (const int64_t ticket : command.forgotten) forget(texts_.find(ticket));
    if (command.begin) Begin(std::move(*command.begin));
    if (!command.step.empty()) Step(exec, command.step);
    if (command.logit_rows > 0) ComputeLogits(exec, command.logit_rows);
    if (!command.end) continue;
    for (auto text = texts_.begin(); text != texts_.end();) text = forget(text);
    return;
  }
}

void RankFollower::Begin(BegunText begun) {
  int64_t promised = 0;
  for (const auto& [ticket, other] : texts_) {
    promised += PromisedBytes(*other.plan, *other.sequence.cache, other.begun.prompt_tokens,
                              other.begun.question_begin);
  }
  Text text{.begun = std::move(begun),
            .plan = nullptr,
            .sequence = {.tokens = {}, .cache = nullptr, .sampler = Sampler({}, 1)},
            .strategy = nullptr};
  text.plan = std::make_shared<const TextPlan>(served_, text.begun.session);
  text.sequence.tokens = std::exchange(text.begun.tokens, {});
  text.sequence.cache = CacheOf(*text.plan, text.begun, text.sequence.tokens);
  const bool has_saved = text.sequence.cache != nullptr;
  if (!has_saved) text.sequence.cache = text.plan->NewText();
  text.sequence.cache->SetQuestion(text.begun.question_begin, text.begun.prompt_tokens);
  RankAnswer mine = AnswerToBegin(ranks_, *text.plan, text.begun, *text.sequence.cache, promised);
  mine.has_saved = has_saved;
  const RanksAnswer all = CompareAnswers(ranks_, mine);
  if (all.lack || !all.all_have_saved) return;
  text.strategy = new_strategy_(text.begun);
  const int64_t ticket = text.begun.ticket;
  texts_.insert_or_assign(ticket, std::move(text));
}

std::unique_ptr<TextCache> RankFollower::CacheOf(const TextPlan& plan, const BegunText& begun,
                                                 std::span<const int32_t> tokens) const {
  if (const auto& prefix = begun.prefix) {
    const TextCache* const from = texts_.at(prefix->ticket).sequence.cache.get();
    return SharedPrefix{.from = from, .tokens = prefix->tokens}.Take();
  }
  if (begun.saved == 0) return plan.NewText();
  if (saved_ == nullptr) return nullptr;
  try {
    // The token behind is always read, since its logits begin the output.
    auto cache = saved_->Restore(plan, tokens.first(begun.saved + 1), /*known=*/0,
                                 begun.question_begin, begun.prompt_tokens);
    return cache != nullptr && cache->length() == begun.saved ? std::move(cache) : nullptr;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kMemory) throw;
    return nullptr;
  }
}

void RankFollower::Save(const TextToSave& saved) const {
  if (saved_ == nullptr) return;
  const Text& text = texts_.at(saved.ticket);
  saved_->Save(text.plan, text.sequence.tokens, *text.sequence.cache, text.begun.question_begin,
               saved.keep_as);
}

void RankFollower::ComputeLogits(const Exec& exec, int64_t rows) {
  Communicator* const tensor = served_.placement.tensor.get();
  if (tensor == nullptr || ranks_.rank() >= tensor->size()) return;
  const int64_t width = model_.hidden_size();
  std::vector<float> states(rows * width);
  tensor->Broadcast(std::as_writable_bytes(std::span(states)), 0, nullptr);
  Workspace::Scope scope(exec.workspace);
  model_.Logits(exec, {states.data(), rows, width, width},
                exec.workspace.Matrix<float>(rows, model_.vocab_size()));
}

void RankFollower::Step(const Exec& exec, std::span<const TextRows> parts) {
  std::vector<Participant> participants;
  RankAnswer mine;
  for (const TextRows& part : parts) {
    Text& text = texts_.at(part.ticket);
    Sequence& sequence = text.sequence;
    const int64_t rows = RowsOf(sequence, part);
    mine.left.push_back(sequence.cache->ContextLeft() - (part.steps > 0 ? rows : 0));
    if (rows == 0) continue;
    participants.push_back({.sequence = &sequence,
                            .strategy = text.strategy.get(),
                            .max_tokens = part.steps > 0 ? rows : part.rows});
    try {
      sequence.cache->Reserve(rows);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kMemory) throw;
      mine.lack = LackOf(ranks_, error);
    }
  }
  const KvBudget& budget = texts_.at(parts.front().ticket).plan->pool().budget();
  mine.free_bytes = budget.free_bytes();
  if (CompareAnswers(ranks_, mine).lack || participants.empty()) return;
  StepTogether(model_, exec, participants);
  for (Participant& one : participants) {
    if (one.error) std::rethrow_exception(one.error);
  }
}

}  // namespace godwit
