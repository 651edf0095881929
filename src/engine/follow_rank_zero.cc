// Ranks that share every text: rank 0 takes the requests, and the others follow.

#include <exception>
#include <utility>

#include "base/error.h"
#include "engine/engine_impl.h"
#include "engine/request_message.h"
#include "engine/shared_tokens.h"

namespace godwit {
namespace {

// Reads the events of a request to the last. False: it failed, and all ranks know.
bool RunToEnd(const Communicator& ranks, Request& request) {
  try {
    while (!request.Next(std::nullopt)->done) request.TakeStates();
    return true;
  } catch (const Error&) {
    if (ranks.left()) throw;
    return false;
  }
}

}  // namespace

Engine::Impl::~Impl() {
  scheduler.reset();  // it talks to the ranks
  if (served.ranks == nullptr || served.ranks->rank() != 0) return;
  if (std::uncaught_exceptions() > 0) served.ranks->Leave("an error of its own");
  try {
    BroadcastEnd(*served.ranks);
  } catch (const std::exception&) {  // they have ended
  }
}

void Engine::Impl::RequireRankZero() const {
  if (served.ranks == nullptr || served.ranks->rank() == 0) return;
  Throw(ErrorKind::kUnsupported, "{} cannot make requests: rank 0 makes them for all ranks",
        served.ranks->NameOf(served.ranks->rank()));
}

void Engine::Impl::FollowRankZero(const std::function<void(GenerateResult)>& on_result) const {
  if (served.ranks == nullptr || served.ranks->rank() == 0) {
    Throw(ErrorKind::kUnsupported, "rank 0 makes the requests for all ranks and cannot follow");
  }
  LeaveOnError(served.ranks.get(), [&] {
    while (auto told = ReceiveRequest(*served.ranks)) {
      const auto request = NewRequest(std::make_shared<const TextPlan>(served, told->session),
                                      std::move(told->tokens), told->generate,
                                      std::make_shared<Interrupt>(), told->kind);
      scheduler->Submit(request);
      const bool ended_well = RunToEnd(*served.ranks, *request);
      if (ended_well && on_result) on_result(request->TakeResult());
    }
  });
}

}  // namespace godwit
