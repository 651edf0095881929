// Ranks that share every text: rank 0 takes the requests, and the others follow.

#include <exception>
#include <memory>

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
  if (text.kind == RequestKind::kStates) return std::make_unique<Reading>();
  if (!text.drafted) return std::make_unique<Autoregressive>();
  return std::make_unique<Speculative>(MakeDrafts("ngram", {.vocab = vocab}), SteadyMs);
}

}  // namespace

Engine::Impl::~Impl() {
  scheduler.reset();  // it talks to the ranks
  if (served.ranks == nullptr || served.ranks->rank() != 0) return;
  if (std::uncaught_exceptions() > 0) served.ranks->Leave("an error of its own");
  try {
    TellRanks(*served.ranks, {.end = true});
  } catch (const std::exception&) {  // they have ended
  }
}

void Engine::Impl::RequireRankZero() const {
  if (served.ranks == nullptr || served.ranks->rank() == 0) return;
  Throw(ErrorKind::kUnsupported, "{} cannot make requests: rank 0 makes them for all ranks",
        served.ranks->NameOf(served.ranks->rank()));
}

void Engine::Impl::FollowRankZero(
    const std::function<void(std::span<const int32_t>)>& on_forgotten) const {
  if (served.ranks == nullptr || served.ranks->rank() == 0) {
    Throw(ErrorKind::kUnsupported, "rank 0 makes the requests for all ranks and cannot follow");
  }
  const auto new_strategy = [&](const BegunText& text) {
    return std::make_unique<RankStrategy>(served.ranks, StrategyOf(text, served.spec.vocab_size));
  };
  LeaveOnError(served.ranks.get(), [&] {
    RankFollower follower(served, *model, new_strategy);
    Interrupt nobody;
    scheduler->RunAlone(nobody, [&](const Exec& exec) { follower.Follow(exec, on_forgotten); });
  });
}

}  // namespace godwit
