// Ranks that share every text: rank 0 takes the requests, and the others follow.

#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "engine/engine_impl.h"
#include "engine/make_drafts.h"
#include "engine/rank_command.h"
#include "engine/rank_follower.h"
#include "engine/rank_strategy.h"
#include "engine/shared_tokens.h"
#include "generate/autoregressive.h"
#include "generate/reading.h"
#include "generate/speculative.h"

namespace godwit {
namespace {

// The strategy of another rank. Ranks have the draft tokens of rank 0, so the cheapest source will
// do where there are any.
std::unique_ptr<Strategy> StrategyOf(const BegunText& text, int64_t vocab) {
  if (OnlyReads(text.kind)) return std::make_unique<Reading>();
  if (!text.drafted) return std::make_unique<Autoregressive>();
  return std::make_unique<Speculative>(MakeDrafts("ngram", {.vocab = vocab}), SteadyMs);
}

}  // namespace

Engine::Impl::~Impl() {
  scheduler.reset();  // it talks to the ranks
  if (served.placement.all == nullptr || served.placement.all->rank() != 0) return;
  if (std::uncaught_exceptions() > 0) served.placement.all->Leave("an error of its own");
  try {
    TellRanks(*served.placement.all, {.end = true});
  } catch (const std::exception&) {  // they have ended
  }
}

void Engine::Impl::RequireRankZero() const {
  if (served.placement.all == nullptr || served.placement.all->rank() == 0) return;
  Throw(ErrorKind::kUnsupported, "{} cannot make requests: rank 0 makes them for all ranks",
        served.placement.all->NameOf(served.placement.all->rank()));
}

void Engine::Impl::Logits(const Exec& exec, MatrixView<const float> hidden,
                          MatrixView<float> logits) const {
  if (served.placement.tensor == nullptr) return model->Logits(exec, hidden, logits);
  std::vector<float> states;
  for (int64_t row = 0; row < hidden.rows; ++row) {
    const auto values = hidden.RowSpan(row);
    states.insert(states.end(), values.begin(), values.end());
  }
  TellRanks(*served.placement.all, {.logit_rows = hidden.rows});
  served.placement.tensor->Broadcast(std::as_writable_bytes(std::span(states)), 0, nullptr);
  Exec to_the_end = exec;  // no rank stops alone
  to_the_end.cancel = nullptr;
  model->Logits(to_the_end, hidden, logits);
}

void Engine::Impl::FollowRankZero(
    const std::function<void(std::span<const int32_t>)>& on_forgotten) const {
  if (served.placement.all == nullptr || served.placement.all->rank() == 0) {
    Throw(ErrorKind::kUnsupported, "rank 0 makes the requests for all ranks and cannot follow");
  }
  const auto new_strategy = [&](const BegunText& text) {
    return std::make_unique<RankStrategy>(served.placement.all,
                                          StrategyOf(text, served.spec.vocab_size));
  };
  LeaveOnError(served.placement.all.get(), [&] {
    RankFollower follower(served, *model, saved.get(), new_strategy);
    Interrupt nobody;
    scheduler->RunAlone(nobody, [&](const Exec& exec) { follower.Follow(exec, on_forgotten); });
  });
}

}  // namespace godwit
