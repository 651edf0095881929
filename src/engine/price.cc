// Engine::PriceOf and ExplainPrefix: a request's work, priced by the steps of others.

#include <algorithm>
#include <utility>

#include "attention/core/reuse_text.h"
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
                 GenerateOptions options, const SessionOptions& session,
                 RequestKind kind = RequestKind::kSubmitted) {
  engine.RequireRankZero();
  if (engine.served.placement.all != nullptr) {
    Throw(ErrorKind::kUnsupported,
          "the price of a request is known where one process has the model, and {} ranks share it",
          engine.served.placement.all->size());
  }
  options.json_schema.clear();  // a grammar takes long to make and changes no cost of the model
  auto plan = std::make_shared<const TextPlan>(engine.served, session);
  std::vector<int32_t> text = plan->WithSink(prompt);
  Foreseen foreseen{.request = engine.NewRequest(std::move(plan), std::move(text), options,
                                                 std::make_shared<Interrupt>(), kind),
                    .found = {},
                    .chunk_tokens = 0,
                    .kind = {}};
  if (kind == RequestKind::kContext) foreseen.request->GoOnFromOthers();
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

// Runs parts of a probe, which ends once its caller has given up.
class ProbeRunner {
 public:
  ProbeRunner(Scheduler& scheduler, Interrupt& interrupt)
      : scheduler_(scheduler), interrupt_(interrupt), guest_(scheduler) {}

  void operator()(FunctionRef<void(const Exec&)> part) const {
    if (gone_ != nullptr) gone_->ThrowIfCancelled();
    scheduler_.RunAlone(interrupt_, [&](const Exec& of_scheduler) {
      Exec exec = of_scheduler;
      if (gone_ != nullptr) exec.cancel = gone_;
      part(exec);
    });
  }

 private:
  Scheduler& scheduler_;
  Interrupt& interrupt_;
  // A caller that gives up waits for no step of the probe.
  const CancelToken* const gone_ = CancelScope::current();
  const Scheduler::Guest guest_;
};

// The reading of a prompt, before its first token.
struct ForeseenReading {
  std::vector<StepWork> steps;
  int64_t cached_tokens = 0, disk_tokens = 0;
  int64_t reused_tokens = 0;  // taken from other texts, each with its own cost
};

// Adds the steps that read a text. own: its tokens that the reader has already. Tokens behind the
// first `known` count as cached.
void AddText(const Foreseen& text, int64_t own, int64_t known, ForeseenReading& reading) {
  const int64_t begin = std::max(own, text.found.tokens);
  const auto steps = ReadingOf(text, begin, text.tokens());
  reading.steps.insert(reading.steps.end(), steps.begin(), steps.end());
  const int64_t cached = std::max<int64_t>(0, begin - known);
  reading.cached_tokens += cached;
  if (text.found.disk_tokens > own) reading.disk_tokens += cached;
}

// The steps of Session::ReadPassages and of the rest behind them.
ForeseenReading ReadingPassages(const Engine::Impl& engine, const Foreseen& asked,
                                std::span<const int32_t> prompt, const PassagePlaces& passages,
                                const SessionOptions& session) {
  const auto context = [&](std::span<const int32_t> head, std::span<const int32_t> passage) {
    std::vector<int32_t> text(head.begin(), head.end());
    text.insert(text.end(), passage.begin(), passage.end());
    return Foresee(engine, text, {.max_tokens = 0, .query_tokens = 0}, session,
                   RequestKind::kContext);
  };
  ForeseenReading reading;
  const std::span<const int32_t> head = prompt.first(static_cast<size_t>(passages.ends[0]));
  const Foreseen of_head = context(head, {});
  const int64_t first = of_head.tokens(), sink = first - std::ssize(head);
  AddText(of_head, /*own=*/0, /*known=*/sink, reading);
  int64_t at = first;
  for (size_t i = 1; i < passages.ends.size(); ++i) {
    const auto begin = static_cast<size_t>(passages.ends[i - 1]);
    const auto passage = prompt.subspan(begin, static_cast<size_t>(passages.ends[i]) - begin);
    const int64_t tokens = std::ssize(passage);
    if (tokens == 0) continue;
    // The text so far may go on behind the head as this passage does.
    const auto joined = prompt.subspan(head.size(), static_cast<size_t>(at - first));
    const int64_t alike = std::ranges::mismatch(passage, joined).in1 - passage.begin();
    AddText(context(head, passage), /*own=*/first + std::min(alike, tokens - 1), /*known=*/first,
            reading);
    if (at > first) {
      const int64_t anew = std::min(passages.read_anew, tokens);
      const auto steps =
          asked.plan().ReadingWork(at, at + anew, /*question_begin=*/at + anew, asked.chunk_tokens);
      reading.steps.insert(reading.steps.end(), steps.begin(), steps.end());
      reading.reused_tokens += tokens - anew;
    }
    at += tokens;
  }
  const auto rest = ReadingOf(asked, at, asked.tokens());
  reading.steps.insert(reading.steps.end(), rest.begin(), rest.end());
  return reading;
}

// Throws Error(kInput) for ends that are not those of a head and passages in a prompt.
void RequirePlaces(const PassagePlaces& passages, int64_t prompt_tokens) {
  const auto& ends = passages.ends;
  if (!ends.empty() && ends.front() > 0 && ends.back() <= prompt_tokens &&
      std::ranges::is_sorted(ends) && passages.read_anew >= 0) {
    return;
  }
  Throw(
      ErrorKind::kInput,
      "expected the ends of a head and of passages within a prompt of {} tokens, ascending, and a "
      "number of tokens to read anew of 0 or more",
      prompt_tokens);
}

// The price of a request that is read so.
RequestPrice PriceOfReading(const Engine::Impl& engine, const Foreseen& asked,
                            const ForeseenReading& reading, const GenerateOptions& options) {
  const TextPlan& plan = asked.plan();
  const int64_t tokens = asked.tokens();
  const std::vector<StepWork> answer{plan.AnswerWork(tokens, asked.request->question_begin())};
  std::vector<StepWork> all = reading.steps;
  all.push_back(answer.front());
  MeasuredCosts& costs = engine.scheduler->costs();
  if (!costs.Tells(asked.kind, all)) {
    engine.ProbeCostsFor(*asked.request, asked.chunk_tokens);
  }
  if (reading.reused_tokens > 0 && !costs.ReuseMs(asked.kind, 1)) {
    engine.ProbeReuseFor(*asked.request);
  }
  const auto reading_ms = costs.Ms(asked.kind, reading.steps);
  const auto answer_ms = costs.Ms(asked.kind, answer);
  const auto reuse_ms = reading.reused_tokens == 0
                            ? std::optional<double>(0)
                            : costs.ReuseMs(asked.kind, reading.reused_tokens);
  if (!reading_ms || !answer_ms || !reuse_ms) {
    Throw(ErrorKind::kMemory,
          "no step of the model was measured yet, and there is no memory to measure one");
  }
  const auto share = options.draft.empty() ? std::nullopt : costs.DraftedShare(options.draft);
  return {.kv = plan.options().spec,
          .prefill = plan.options().prefill,
          .prompt_tokens = tokens,
          .cached_tokens = reading.cached_tokens,
          .disk_tokens = reading.disk_tokens,
          .kv_bytes = plan.KvBytes(tokens),
          .first_token_ms = *reading_ms + *reuse_ms,
          .token_ms = *answer_ms * share.value_or(1),
          .draft_measured = share.has_value(),
          .near_measured = costs.Tells(asked.kind, all),
          .running = asked.found.running,
          .waiting = asked.found.waiting};
}

}  // namespace

void Engine::Impl::Reuse(Interrupt& interrupt, const TextPlan& plan, const TextCache& from,
                         int64_t begin, int64_t count, TextCache& text) const {
  double ms = 0;
  scheduler->RunAlone(interrupt, [&](const Exec& exec) {
    const double began_ms = now_ms_();
    ReuseTokens(exec, from, begin, count, text);
    ms = now_ms_() - began_ms;
  });
  if (count > 0) {
    scheduler->costs().RecordReuse(MeasuredCosts::KindOf(plan.options()), count, ms);
  }
}

void Engine::Impl::ProbeReuseFor(const Request& request) const {
  const auto kind = MeasuredCosts::KindOf(request.plan().options());
  const ProbeRunner run_part(*scheduler, request.interrupt());
  ProbeReuse(request.plan(), now_ms_, run_part,
             [&](int64_t tokens, double ms) { scheduler->costs().RecordReuse(kind, tokens, ms); });
}

void Engine::Impl::ProbeCostsFor(const Request& request, int64_t chunk_tokens) const {
  MeasuredCosts& costs = scheduler->costs();
  const auto kind = MeasuredCosts::KindOf(request.plan().options());
  const int64_t chunk = std::min({chunk_tokens, std::max<int64_t>(64, request.prompt_tokens()),
                                  std::max<int64_t>(1, request.plan().limit_tokens() / 8)});
  const int64_t depth = ProbeDepth(request.plan(), request.prompt_tokens(), chunk);
  // A kind is probed again only for much longer prompts.
  if (costs.probed(kind) >= depth / 2) return;
  const ProbeRunner run_part(*scheduler, request.interrupt());
  ProbeCosts(*model, request.plan(), request.sequence().tokens, chunk, depth, now_ms_, run_part,
             [&](const StepWork& work, double ms) { costs.Record(kind, work, ms); });
  costs.SetProbed(kind, depth);
}

RequestPrice Engine::Impl::PriceOf(std::span<const int32_t> prompt, const GenerateOptions& options,
                                   const SessionOptions& session) const {
  const Foreseen asked = Foresee(*this, prompt, options, session);
  ForeseenReading reading;
  AddText(asked, /*own=*/0, /*known=*/0, reading);
  return PriceOfReading(*this, asked, reading, options);
}

RequestPrice Engine::Impl::PriceOf(std::span<const int32_t> prompt, const PassagePlaces& passages,
                                   const GenerateOptions& options,
                                   const SessionOptions& session) const {
  RequirePlaces(passages, std::ssize(prompt));
  RequirePassages(TextPlan(served, session), /*joins=*/passages.ends.size() > 2);
  const Foreseen asked = Foresee(*this, prompt, options, session);
  const ForeseenReading reading = ReadingPassages(*this, asked, prompt, passages, session);
  return PriceOfReading(*this, asked, reading, options);
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
