// Engine::PriceOf and ExplainPrefix: a request's work, priced by the steps of others.

#include <algorithm>
#include <utility>

#include "base/cancel.h"
#include "base/error.h"
#include "engine/engine_impl.h"
#include "engine/probe_costs.h"

namespace godwit {
namespace {

// A request as it would be, and what it would find.
struct Foreseen {
  std::shared_ptr<Request> request;
  Scheduler::Found found;
  int64_t chunk_tokens;
  MeasuredCosts::Kind kind;

  const TextPlan& plan() const { return request->plan(); }
  int64_t tokens() const { return request->prompt_tokens(); }
};

Foreseen Foresee(const Engine::Impl& engine, std::span<const int32_t> prompt,
                 GenerateOptions options, const SessionOptions& session) {
  engine.RequireRankZero();
  if (engine.served.placement.all != nullptr) {
    Throw(ErrorKind::kUnsupported,
          "the price of a request is known where one process has the model, and {} ranks share it",
          engine.served.placement.all->size());
  }
  options.json_schema.clear();  // a grammar takes long to make and changes no cost of the model
  auto plan = std::make_shared<const TextPlan>(engine.served, session);
  std::vector<int32_t> text = plan->WithSink(prompt);
  Foreseen foreseen{
      .request = engine.NewRequest(std::move(plan), std::move(text), options,
                                   std::make_shared<Interrupt>(), RequestKind::kSubmitted),
      .found = {},
      .chunk_tokens = 0,
      .kind = {}};
  const TextPlan& asked = foreseen.plan();
  foreseen.chunk_tokens = std::min(asked.chunk_tokens(), engine.scheduler->step_tokens());
  foreseen.kind = MeasuredCosts::KindOf(asked.options());
  foreseen.found = engine.scheduler->Look(*foreseen.request, foreseen.request->interrupt());
  return foreseen;
}

std::vector<StepWork> ReadingOf(const Foreseen& foreseen, int64_t from, int64_t to) {
  auto steps = foreseen.plan().ReadingWork(
      from, foreseen.tokens(), foreseen.request->question_begin(), foreseen.chunk_tokens);
  int64_t at = from;
  size_t kept = 0;
  while (kept < steps.size() && at < to) at += steps[kept++].rows;
  steps.resize(kept);
  return steps;
}

}  // namespace

void Engine::Impl::ProbeCostsFor(const Request& request, int64_t chunk_tokens) const {
  MeasuredCosts& costs = scheduler->costs();
  const auto kind = MeasuredCosts::KindOf(request.plan().options());
  const int64_t chunk = std::min({chunk_tokens, std::max<int64_t>(64, request.prompt_tokens()),
                                  std::max<int64_t>(1, request.plan().limit_tokens() / 8)});
  const int64_t depth = ProbeDepth(request.plan(), request.prompt_tokens(), chunk);
  // A kind is probed again only for much longer prompts.
  if (costs.probed(kind) >= depth / 2) return;
  // A caller that gives up waits for no step of the probe.
  const CancelToken* const gone = CancelScope::current();
  const Scheduler::Guest guest(*scheduler);
  const auto run_part = [&](FunctionRef<void(const Exec&)> part) {
    if (gone != nullptr) gone->ThrowIfCancelled();
    scheduler->RunAlone(request.interrupt(), [&](const Exec& of_scheduler) {
      Exec exec = of_scheduler;
      if (gone != nullptr) exec.cancel = gone;
      part(exec);
    });
  };
  ProbeCosts(*model, request.plan(), request.sequence().tokens, chunk, depth, now_ms_, run_part,
             [&](const StepWork& work, double ms) { costs.Record(kind, work, ms); });
  costs.SetProbed(kind, depth);
}

RequestPrice Engine::Impl::PriceOf(std::span<const int32_t> prompt, const GenerateOptions& options,
                                   const SessionOptions& session) const {
  const Foreseen foreseen = Foresee(*this, prompt, options, session);
  const TextPlan& plan = foreseen.plan();
  const Scheduler::Found& found = foreseen.found;
  const int64_t tokens = foreseen.tokens();
  const auto reading = ReadingOf(foreseen, found.tokens, tokens);
  const std::vector<StepWork> answer{plan.AnswerWork(tokens, foreseen.request->question_begin())};
  std::vector<StepWork> all = reading;
  all.push_back(answer.front());
  MeasuredCosts& costs = scheduler->costs();
  if (!costs.Tells(foreseen.kind, all)) {
    ProbeCostsFor(*foreseen.request, foreseen.chunk_tokens);
  }
  const auto reading_ms = costs.Ms(foreseen.kind, reading);
  const auto answer_ms = costs.Ms(foreseen.kind, answer);
  if (!reading_ms || !answer_ms) {
    Throw(ErrorKind::kMemory,
          "no step of the model was measured yet, and there is no memory to measure one");
  }
  const auto share = options.draft.empty() ? std::nullopt : costs.DraftedShare(options.draft);
  return {.kv = plan.options().spec,
          .prefill = plan.options().prefill,
          .prompt_tokens = tokens,
          .cached_tokens = found.tokens,
          .disk_tokens = found.disk_tokens,
          .kv_bytes = plan.KvBytes(tokens),
          .first_token_ms = *reading_ms,
          .token_ms = *answer_ms * share.value_or(1),
          .draft_measured = share.has_value(),
          .near_measured = costs.Tells(foreseen.kind, all),
          .running = found.running,
          .waiting = found.waiting};
}

PrefixReport Engine::Impl::ExplainPrefix(std::span<const int32_t> prompt,
                                         const GenerateOptions& options,
                                         const SessionOptions& session) const {
  const Foreseen foreseen = Foresee(*this, prompt, options, session);
  const Scheduler::Found& found = foreseen.found;
  const auto& text = foreseen.request->sequence().tokens;
  PrefixReport report{.prompt_tokens = foreseen.tokens(),
                      .cached_tokens = found.tokens,
                      .alike_tokens = found.alike,
                      .other_tokens = found.length,
                      .mine = {},
                      .other = found.other};
  const auto behind = std::span(text).subspan(static_cast<size_t>(found.alike));
  const auto shown = behind.first(std::min<size_t>(behind.size(), Scheduler::Found::kOther));
  report.mine.assign(shown.begin(), shown.end());
  const int64_t end = std::min(foreseen.tokens() - 1, found.length);
  if (found.length == 0 || end <= found.tokens) return report;
  const auto lost = ReadingOf(foreseen, found.tokens, end);
  MeasuredCosts& costs = scheduler->costs();
  if (!costs.Tells(foreseen.kind, lost)) ProbeCostsFor(*foreseen.request, foreseen.chunk_tokens);
  report.lost_ms = costs.Ms(foreseen.kind, lost).value_or(0);
  return report;
}

}  // namespace godwit
