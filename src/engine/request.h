// A request between the thread that made it and reads its events, and the scheduler that runs it.
//
// A request waits, runs (and may be paused, when it waits again) and is done. What belongs to the
// text is the scheduler's while it runs. A request that waits is finished by whoever first finds
// that its caller gave up or its time is over, be it its reader.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "base/stopwatch.h"
#include "engine/interrupt.h"
#include "engine/reading_pace.h"
#include "engine/text_output.h"
#include "engine/text_plan.h"
#include "engine/thought_watch.h"
#include "engine/token_logprobs.h"
#include "generate/sequence.h"
#include "generate/speculative.h"
#include "generate/step_together.h"
#include "generate/strategy.h"
#include "godwit/engine.h"
#include "text/json_grammar.h"

namespace godwit {

// ask_from: Request::ask_from.
KvReport ReportOf(const TextCache& cache, int64_t ask_from);

enum class RequestKind {
  kSubmitted,  // may go on from what other requests have read, and leaves to them what it read
  kOfSession,  // its session takes the cache back
  kStates,     // likewise, and continues nothing: it hands over the states of its text
};

// Of tokens that were read together, [tokens, hidden], before the final norm.
struct ReadStates {
  int64_t position;  // of the first
  std::vector<float> values;
};

class Request {
 public:
  // With nothing cached (GoOnFrom). eos: ids that end a text. drafted: as GenerateOptions::draft
  // has it; null: without guesses.
  // Throws Error(kInput) for options that make no sense.
  Request(std::shared_ptr<const TextPlan> plan, std::vector<int32_t> prompt,
          const GenerateOptions& options, const Tokenizer* tokenizer, std::span<const int32_t> eos,
          int32_t vocab, std::shared_ptr<Interrupt> interrupt, RequestKind kind,
          std::unique_ptr<Speculative> drafted = nullptr);

  // Its output, or what follows its thought, is to be what that allows. Before it is submitted.
  void RestrictTo(std::unique_ptr<JsonMatcher> matcher, const Tokenizer& tokenizer);

  // --- the reader's side ---

  // What came since the last call; waits for something, for wait_ms at most if that is given.
  // Throws the error that ended the request, once.
  std::optional<Event> Next(std::optional<double> wait_ms);
  // Of kStates: what came with the last event that told of progress. Not taken, it holds the
  // request up. After a pause, states come again.
  std::optional<ReadStates> TakeStates();
  // Called when nothing unread holds the request up any more.
  std::function<void()> on_room;
  void Cancel() noexcept { interrupt_->Cancel(); }
  bool done() const;
  // Of a request that is done.
  GenerateResult TakeResult() { return std::move(result_); }
  std::unique_ptr<TextCache> TakeCache() { return std::move(sequence_.cache); }
  std::vector<int32_t> TakeTokens() { return std::move(sequence_.tokens); }

  // --- the scheduler's side ---

  int64_t ticket = 0;  // in the order of submission

  RequestKind kind() const { return kind_; }
  const GenerateOptions& options() const { return options_; }
  const TextPlan& plan() const { return *plan_; }
  const std::shared_ptr<const TextPlan>& shared_plan() const { return plan_; }
  Interrupt& interrupt() const { return *interrupt_; }
  bool shares() const { return kind_ == RequestKind::kSubmitted; }
  const Sequence& sequence() const { return sequence_; }
  // Where its question begins (TextPlan::AskFrom).
  int64_t ask_from() const { return ask_from_; }
  int64_t prompt_tokens() const { return prompt_tokens_; }
  bool reads_prompt() const { return sequence_.pending() > 1; }
  // Whether it does so without a pause: states are taken in between, by a reader who may wait for
  // others.
  bool reads_on() const { return reads_prompt() && kind_ != RequestKind::kStates; }
  // Rows that it can make use of in a step that continues it.
  int64_t most_rows() const { return strategy_->MostRows(); }
  // A step with its guesses found no memory, and was made without.
  void CountRoomlessStep() { ++roomless_steps_; }
  // Whether it cannot go on before its events, or states, are read.
  bool held_up() const;

  // Why it should end, if it should.
  std::optional<FinishReason> Expired() const;
  // True: nothing is asked for, or there is no room for output, and it is done.
  bool FinishIfNothingIsAsked();
  // To running, or false: it is done.
  bool Begin();
  // Back to waiting: there was no room.
  void WaitOn();
  // To waiting, with nothing cached.
  void Pause();
  // Goes on from `cache`, which holds a beginning of its text, at most all but its last token, and
  // no more than was ReadAlike. disk_tokens: of that, from saved texts.
  void GoOnFrom(std::unique_ptr<TextCache> cache, int64_t disk_tokens = 0);
  // What it had read turned out to be of no use.
  void ReadAgain();
  // Whether what it has read since this was last so is to be saved: so many tokens, or so long ago,
  // or the prompt's end.
  bool IsToBeSaved(int64_t tokens, double ms);
  // Room for a step of so many tokens. False, with the reason: there is none.
  bool Reserve(int64_t tokens);
  // Memory that its strategy took besides. False: none.
  bool GiveBackDrafts() { return strategy_->GiveBack(); }
  // From now on other ranks go through it, too, and hear of its end where they would not expect it.
  void JoinRanks() { with_ranks_ = true; }
  // Whether ranks see that all of them have room before a step of so many tokens, for which this
  // one has reserved it: where they compute together, and need pages that they had not before. To
  // be asked once for each step.
  bool MeetsRanks(int64_t tokens);
  // That reason, once: an error has one owner at a time, or its last one would free it in a thread
  // that nothing orders after those who read it.
  std::exception_ptr TakeReserveError() { return std::exchange(reserve_error_, nullptr); }

  // In a step that reads `tokens` of it.
  Participant PartOf(int64_t tokens);
  // After the step. True: the request is done.
  bool Take(Participant& part);
  // Makes the request done; what was cached stays for TakeCache.
  void Finish(FinishReason reason);
  // all_know: the other ranks that it fails, for the same reason.
  void Fail(std::exception_ptr error, bool all_know = false);

 private:
  enum class State { kWaiting, kRunning, kDone };
  FinishReason EndOfLimit() const;
  void KeepStates(MatrixView<const float> states);
  void TakeAccepted(std::span<const int32_t> tokens);
  bool TakeToken(int32_t token, const LogprobRow* logprobs, std::string& text);
  void PostProgress();
  void Post(FunctionRef<void(Event&)> add);
  void SetDone(std::exception_ptr error);
  void FinishResult(FinishReason reason, std::string& text);
  // Ranks that share the text learn that this one does not go on with it.
  void LeaveRanks(std::string_view why) noexcept;

  std::shared_ptr<const TextPlan> plan_;
  GenerateOptions options_;
  std::vector<int32_t> eos_;
  std::shared_ptr<Interrupt> interrupt_;
  RequestKind kind_;
  Stopwatch watch_;
  int64_t limit_;  // of output tokens
  int64_t prompt_tokens_;
  int64_t ask_from_;
  bool cached_known_ = false;
  int64_t disk_tokens_ = 0;
  int64_t saved_tokens_ = 0;
  double saved_ms_ = 0;
  bool read_prompt_ = false;  // when it was last saved
  bool with_ranks_ = false;
  int64_t met_pages_ = 0;  // of the text, when ranks last did
  Sequence sequence_;
  std::unique_ptr<Strategy> strategy_;
  const DraftStats* draft_stats_ = nullptr;  // the strategy's, if it has drafts
  int64_t roomless_steps_ = 0;
  TextOutput output_;
  std::optional<ThoughtWatch> thought_;
  ReadingPace pace_;
  std::vector<LogprobRow> logprobs_;  // of the tokens that the last step accepted
  std::function<void(MatrixView<const float>)> on_states_;
  std::function<void(std::span<const float>)> on_choice_;
  GenerateResult result_;
  std::exception_ptr reserve_error_;

  std::atomic<State> state_{State::kWaiting};
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable posted_;
  Event unread_;
  bool has_event_ = false;
  std::optional<ReadStates> states_;
  bool done_ = false;
  std::exception_ptr error_;
};

}  // namespace godwit
