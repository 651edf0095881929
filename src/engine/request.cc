#include "engine/request.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/next_poll.h"
#include "engine/rank_strategy.h"
#include "engine/schema_constraint.h"
#include "generate/autoregressive.h"
#include "generate/reading.h"
#include "generate/speculative.h"
#include "kv/snapshot_folder.h"

namespace godwit {
namespace {

// Tokens that may wait for a reader before the request is held up.
constexpr size_t kMaxUnread = 256;

void CheckOptions(const GenerateOptions& options, RequestKind kind) {
  if (options.max_tokens < -1) {
    Throw(ErrorKind::kInput, "max_tokens must be at least 0, or -1 for no limit, not {}",
          options.max_tokens);
  }
  if (options.query_tokens < 1 && kind != RequestKind::kContext) {
    Throw(ErrorKind::kInput, "query_tokens must be at least 1, not {}", options.query_tokens);
  }
  if (options.top_logprobs < -1) {
    Throw(ErrorKind::kInput, "top_logprobs must be at least 0, or -1 for none, not {}",
          options.top_logprobs);
  }
  if (!options.json_schema.empty() && options.ignore_eos) {
    Throw(ErrorKind::kInput,
          "json_schema and ignore_eos exclude each other, because JSON has an end");
  }
  if (!options.keep_as.empty()) CheckPinName(options.keep_as);
  if (!(options.timeout_ms >= 0)) {
    Throw(ErrorKind::kInput, "timeout_ms must be at least 0, not {}", options.timeout_ms);
  }
}

DraftReport ReportOf(const DraftStats& stats, int64_t steps_short_of_memory) {
  DraftReport report{.steps = stats.steps,
                     .draft_tokens = stats.draft_tokens,
                     .steps_short_of_memory = steps_short_of_memory};
  for (const auto& [source, draft_tokens, skipped_steps] : stats.accepted) {
    report.accepted += draft_tokens;
    report.sources.push_back({std::string(source), draft_tokens, skipped_steps});
  }
  return report;
}

// Removes `tokens` tokens that were accepted behind the end of the answer, in the same step. The
// text is then as without them. (A cache that cannot go back serves no other text.)
void ForgetBehind(Sequence& sequence, size_t tokens) {
  if (tokens == 0) return;
  sequence.tokens.resize(sequence.tokens.size() - tokens);
  const int64_t length = std::ssize(sequence.tokens) - 1;
  if (sequence.cache->CanTruncate(length)) sequence.cache->Truncate(length);
}

}  // namespace

KvReport ReportOf(const TextCache& cache, int64_t question_begin) {
  const KvStats stats = cache.Stats();
  KvReport report{.policy = stats.policy,
                  .prefill = cache.policy().facts().prefill,
                  .seen = stats.seen,
                  .context_tokens = std::min(stats.seen, question_begin),
                  .kept = stats.kept,
                  .bytes = stats.bytes};
  if (cache.cache().pool().file() != nullptr) {
    report.file = {.in_memory_bytes =
                       cache.cache().BytesInMemory() + cache.index_bytes() + cache.states().bytes(),
                   .read_bytes = stats.file_read_bytes};
  }
  for (const auto& [begin, end] : stats.dropped) report.dropped.push_back({begin, end});
  return report;
}

Request::Request(std::shared_ptr<const TextPlan> plan, std::vector<int32_t> prompt,
                 const GenerateOptions& options, const Tokenizer* tokenizer,
                 std::span<const int32_t> eos, int32_t vocab, std::shared_ptr<Interrupt> interrupt,
                 RequestKind kind, std::unique_ptr<Speculative> drafted)
    : plan_(std::move(plan)),
      options_((CheckOptions(options, kind), options)),
      eos_(eos.begin(), eos.end()),
      interrupt_(std::move(interrupt)),
      kind_(kind),
      limit_(plan_->limit_tokens() - std::ssize(prompt)),
      prompt_tokens_(std::ssize(prompt)),
      question_begin_(plan_->QuestionBegin(prompt_tokens_, options.query_tokens)),
      sequence_{.tokens = {},
                .cache = nullptr,
                .sampler = Sampler(options.sampler, vocab),
                .id = options.sequence},
      output_(tokenizer, prompt, options.stop, options.spelled_out, &interrupt_->token()) {
  ContinueFrom(plan_->NewText());
  if (tokenizer != nullptr && !options.thought.end.empty()) {
    thought_.emplace(options.thought, *tokenizer, &interrupt_->token());
  }
  if (options_.max_tokens >= 0) limit_ = std::min(limit_, options_.max_tokens);
  // Reserved memory lets decode allocate little. Longer outputs grow on the way.
  constexpr int64_t kReservedTokens = 1 << 17;
  const auto reserved = static_cast<size_t>(std::min(limit_, kReservedTokens));
  result_.tokens.reserve(reserved);
  result_.prompt_tokens = prompt_tokens_;
  if (OnlyReads(kind_)) {
    strategy_ = std::make_unique<Reading>();
    if (kind_ == RequestKind::kStates) {
      on_states_ = [this](MatrixView<const float> states) { KeepStates(states); };
    }
  } else if (drafted != nullptr) {
    draft_stats_ = &drafted->stats();
    strategy_ = std::move(drafted);
  } else {
    strategy_ = std::make_unique<Autoregressive>();
  }
  if (plan_->all_ranks() != nullptr) {
    strategy_ = std::make_unique<RankStrategy>(plan_->all_ranks(), std::move(strategy_));
  }
  if (options_.top_logprobs >= 0) {
    on_choice_ = [this](std::span<const float> logits) {
      logprobs_.emplace_back(logits, options_.top_logprobs);
    };
  }
  prompt.reserve(prompt.size() + reserved);
  sequence_.tokens = std::move(prompt);
  TakeBegun();
}

// An output that has begun is a text to be read, as it is after a pause.
void Request::TakeBegun() {
  if (options_.begun.empty() || options_.top_logprobs >= 0 || OnlyReads(kind_) ||
      plan_->all_ranks() != nullptr || limit_ <= 0) {
    return;
  }
  const Taken taken = TakeTokens(options_.begun);
  sequence_.tokens.insert(sequence_.tokens.end(), options_.begun.begin(),
                          options_.begun.begin() + static_cast<int64_t>(taken.tokens));
  FinishIfEnded(taken);
}

void Request::RestrictTo(std::unique_ptr<JsonMatcher> matcher, const Tokenizer& tokenizer) {
  sequence_.restrict_to = [begin = static_cast<size_t>(prompt_tokens_),
                           held = std::make_shared<SchemaConstraint>(
                               std::move(matcher), options_.thought, tokenizer, eos_)](
                              std::span<const int32_t> tokens, std::span<float> logits) {
    held->Restrict(tokens.subspan(begin), logits);
  };
}

std::optional<Event> Request::Next(std::optional<double> wait_ms) {
  const Stopwatch waited;
  std::unique_lock lock(mutex_);
  while (!has_event_) {
    if (done_) Throw(ErrorKind::kInput, "the request has ended and has no further events");
    const double left_ms = wait_ms.value_or(std::numeric_limits<double>::infinity()) - waited.ms();
    if (!(left_ms > 0)) return std::nullopt;
    posted_.wait_until(lock, NextPoll(left_ms));
    if (has_event_) break;
    const auto reason = Expired();  // nothing else may look at a waiting request
    if (!reason) continue;
    lock.unlock();
    if (*reason == FinishReason::kTimeout) interrupt_->Cancel();
    State waiting = State::kWaiting;
    if (state_.compare_exchange_strong(waiting, State::kDone)) Finish(*reason);
    lock.lock();
  }
  const bool waits_for_reader = unread_.tokens.size() >= kMaxUnread;
  Event event = std::exchange(unread_, {});
  has_event_ = false;
  const std::exception_ptr error = std::exchange(error_, nullptr);
  lock.unlock();
  if (waits_for_reader && on_unblocked) on_unblocked();
  if (error) std::rethrow_exception(error);
  return event;
}

std::optional<ReadStates> Request::TakeStates() {
  std::optional<ReadStates> states;
  {
    const std::lock_guard lock(mutex_);
    states = std::exchange(states_, std::nullopt);
  }
  if (states && on_unblocked) on_unblocked();
  return states;
}

bool Request::done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

bool Request::waits_for_reader() const {
  const std::lock_guard lock(mutex_);
  return unread_.tokens.size() >= kMaxUnread || states_;
}

std::optional<FinishReason> Request::Expired() const {
  if (options_.timeout_ms > 0 && watch_.ms() >= options_.timeout_ms) return FinishReason::kTimeout;
  if (interrupt_->cancelled()) return FinishReason::kCancelled;
  return std::nullopt;
}

bool Request::FinishIfNothingIsAsked() {
  if (done()) return true;
  if (limit_ > 0 || OnlyReads(kind_)) return false;
  Finish(EndOfLimit());
  return true;
}

FinishReason Request::EndOfLimit() const {
  return limit_ == options_.max_tokens ? FinishReason::kLength : FinishReason::kContextFull;
}

bool Request::Begin() {
  State waiting = State::kWaiting;
  return state_.compare_exchange_strong(waiting, State::kRunning);
}

void Request::Pause() {
  ReadAgain();
  ++result_.pauses;
  state_.store(State::kWaiting);
}

void Request::WaitOn() {
  if (shares()) ContinueFrom(plan_->NewText());
  state_.store(State::kWaiting);
}

void Request::ContinueFrom(std::unique_ptr<TextCache> cache, int64_t disk_tokens) {
  cache->SetQuestion(question_begin_, prompt_tokens_);
  sequence_.cache = std::move(cache);
  disk_tokens_ = disk_tokens;
}

void Request::ReadAgain() {
  ReleaseDrafts();
  ContinueFrom(plan_->NewText());
}

bool Request::IsToBeSaved(int64_t tokens, double ms) {
  const int64_t length = sequence_.cache->length();
  const bool at_end = !reads_prompt() && !read_prompt_;
  const bool enough = length - saved_tokens_ >= tokens || watch_.ms() - saved_ms_ >= ms;
  if (length - saved_tokens_ < kTileTokens || !(enough || at_end)) return false;
  saved_tokens_ = length;
  saved_ms_ = watch_.ms();
  read_prompt_ = !reads_prompt();
  return true;
}

bool Request::Reserve(int64_t tokens) {
  try {
    sequence_.cache->Reserve(tokens);
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kMemory) throw;
    reserve_error_ = std::current_exception();
    return false;
  }
}

Participant Request::PartOf(int64_t tokens) {
  if (!cached_known_) {
    cached_known_ = true;
    // A part of an output that had begun may be cached, too.
    result_.cached_tokens = std::min(sequence_.cache->length(), prompt_tokens_);
    result_.disk_tokens = disk_tokens_;
    saved_tokens_ = sequence_.cache->length();
    saved_ms_ = watch_.ms();
  }
  if (result_.tokens.empty()) pace_.BeginAt(sequence_.cache->length(), watch_.ms());
  return {.sequence = &sequence_,
          .strategy = strategy_.get(),
          .max_tokens = tokens,
          .on_states = on_states_ ? &on_states_ : nullptr,
          .on_choice = on_choice_ ? &on_choice_ : nullptr};
}

bool Request::Take(Participant& part) {
  if (result_.tokens.empty()) PostProgress();
  std::exception_ptr error = std::exchange(part.error, nullptr);
  try {
    if (!error) TakeAccepted(part.accepted);
  } catch (...) {
    error = std::current_exception();
  }
  if (error) {
    const auto reason = Expired();
    if (reason) Finish(*reason);  // a decoder that hangs throws it, too
    if (!reason) Fail(std::move(error));
  }
  return state_.load() == State::kDone;
}

// Runs on the scheduler's thread, before Take.
void Request::KeepStates(MatrixView<const float> states) {
  ReadStates read{.position = sequence_.cache->length() - states.rows, .values = {}};
  for (int64_t row = 0; row < states.rows; ++row) {
    const auto values = states.RowSpan(row);
    read.values.insert(read.values.end(), values.begin(), values.end());
  }
  const std::lock_guard lock(mutex_);
  states_ = std::move(read);
}

void Request::TakeAccepted(std::span<const int32_t> tokens) {
  if (tokens.empty()) {
    if (sequence_.pending() == 0) Finish(FinishReason::kStop);
    return;
  }
  const Taken taken = TakeTokens(tokens);
  ForgetBehind(sequence_, tokens.size() - taken.tokens);
  FinishIfEnded(taken);
}

Request::Taken Request::TakeTokens(std::span<const int32_t> tokens) {
  if (result_.tokens.empty()) result_.prompt_ms = watch_.ms();
  const size_t before = result_.tokens.size();
  std::string text;
  std::vector<int64_t> ends;
  size_t taken = 0;
  bool ended = false;
  while (!ended && taken < tokens.size() && std::ssize(result_.tokens) < limit_) {
    const LogprobRow* const logprobs = logprobs_.empty() ? nullptr : &logprobs_[taken];
    ended = TakeToken(tokens[taken++], logprobs, text);
    ends.push_back(std::ssize(text));
  }
  logprobs_.clear();
  result_.text += text;
  Post([&](Event& event) {
    for (const int64_t end : ends) event.text_ends.push_back(std::ssize(event.text) + end);
    event.tokens.insert(event.tokens.end(), result_.tokens.begin() + static_cast<int64_t>(before),
                        result_.tokens.end());
    if (!result_.logprobs.empty()) {
      event.logprobs.insert(event.logprobs.end(),
                            result_.logprobs.begin() + static_cast<int64_t>(before),
                            result_.logprobs.end());
    }
    event.text += text;
  });
  return {.tokens = taken, .ended = ended};
}

void Request::FinishIfEnded(const Taken& taken) {
  if (taken.ended) {
    Finish(FinishReason::kStop);
  } else if (std::ssize(result_.tokens) >= limit_) {
    Finish(EndOfLimit());
  }
}

// Returns true if the token ends the text.
bool Request::TakeToken(int32_t token, const LogprobRow* logprobs, std::string& text) {
  result_.tokens.push_back(token);
  if (logprobs != nullptr) result_.logprobs.push_back(logprobs->Of(token));
  if (!options_.ignore_eos && std::ranges::find(eos_, token) != eos_.end()) return true;
  text += output_.Push(token);
  if (thought_) {
    thought_->Push(token);
    result_.thought_tokens = thought_->tokens();
  }
  return output_.stopped();
}

void Request::PostProgress() {
  const double now_ms = watch_.ms();
  const int64_t done = std::min(sequence_.cache->length(), prompt_tokens_);
  pace_.EndAt(done, now_ms);
  Post([&](Event& event) {
    event.progress = {.done_tokens = done,
                      .total_tokens = prompt_tokens_,
                      .cached_tokens = result_.cached_tokens,
                      .elapsed_ms = now_ms,
                      .left_ms = pace_.LeftMs(prompt_tokens_)};
  });
}

void Request::Finish(FinishReason reason) {
  std::string text;
  std::exception_ptr error;
  try {
    FinishResult(reason, text);
  } catch (...) {
    error = std::current_exception();
  }
  if (error) return Fail(std::move(error));
  if (!text.empty()) Post([&](Event& event) { event.text += text; });
  SetDone(nullptr);
}

void Request::FinishResult(FinishReason reason, std::string& text) {
  const int64_t read = std::min(sequence_.cache->length(), result_.prompt_tokens);
  result_.read_tokens = std::max<int64_t>(0, read - result_.cached_tokens);
  text = output_.Finish();
  result_.text += text;
  result_.finish_reason = reason;
  // Decoders hold back text that a later token could change. The held text may end in a stop
  // string.
  if (reason != FinishReason::kCancelled && output_.stopped()) {
    result_.finish_reason = FinishReason::kStop;
  }
  result_.stop = output_.stop();
  result_.kv = ReportOf(*sequence_.cache, question_begin_);
  if (draft_stats_ != nullptr) result_.drafts = ReportOf(*draft_stats_, steps_short_of_memory_);
  if (result_.tokens.empty()) result_.prompt_ms = watch_.ms();
  result_.predicted_ms = watch_.ms() - result_.prompt_ms;
}

void Request::Fail(std::exception_ptr error) { SetDone(std::move(error)); }

void Request::Post(FunctionRef<void(Event&)> add) {
  {
    const std::lock_guard lock(mutex_);
    add(unread_);
    unread_.thought_tokens = result_.thought_tokens;
    has_event_ = true;
  }
  posted_.notify_all();
}

void Request::SetDone(std::exception_ptr error) {
  ReleaseDrafts();
  state_.store(State::kDone);
  {
    const std::lock_guard lock(mutex_);
    unread_.done = true;
    unread_.thought_tokens = result_.thought_tokens;
    has_event_ = true;
    done_ = true;
    error_ = std::move(error);
  }
  posted_.notify_all();
}

}  // namespace godwit
