// Request: a prompt and its answer, between the thread that made it and reads its events, and the
// scheduler that runs it.
//
// A request waits, runs (and may be paused, when it waits again) and is done. While it runs, its
// text belongs to the scheduler. A waiting request whose caller gave up or whose time is over is
// finished by the first thread that notices, which may be its reader.
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

// The report of a text's cache. question_begin: Request::question_begin.
KvReport ReportOf(const TextCache& cache, int64_t question_begin);

enum class RequestKind {
  kSubmitted,  // may go on from texts of other requests, and leaves its own to them
  kOfSession,  // its session takes the cache back
  kStates,     // as kOfSession, but it hands over hidden states and continues nothing
  kContext,    // as kOfSession, but all of it is context, and it continues nothing
};

// Whether a request ends where its text ends.
inline bool OnlyReads(RequestKind kind) {
  return kind == RequestKind::kStates || kind == RequestKind::kContext;
}

// Hidden states of tokens that were read together, [tokens, hidden], before the final norm.
struct ReadStates {
  int64_t position;  // of the first token
  std::vector<float> values;
};

class Request {
 public:
  // Makes a request with nothing cached (ContinueFrom). eos: ids that end a text. drafted: the
  // strategy for GenerateOptions::draft; null: no draft tokens. Throws Error(kInput) for options
  // that make no sense.
  Request(std::shared_ptr<const TextPlan> plan, std::vector<int32_t> prompt,
          const GenerateOptions& options, const Tokenizer* tokenizer, std::span<const int32_t> eos,
          int32_t vocab, std::shared_ptr<Interrupt> interrupt, RequestKind kind,
          std::unique_ptr<Speculative> drafted = nullptr);

  // Restricts the output, or the part after its thought, to what the matcher allows. To be called
  // before the request is submitted.
  void RestrictTo(std::unique_ptr<JsonMatcher> matcher, const Tokenizer& tokenizer);

  // --- the reader's side ---

  // The news since the last call. Waits until there is some, for wait_ms at most if that is given.
  // Throws the error that ended the request, once.
  std::optional<Event> Next(std::optional<double> wait_ms);
  // The hidden states that came with the last progress event of a kStates request. Until they are
  // taken, the request does not go on. After a pause, states come again.
  std::optional<ReadStates> TakeStates();
  // The callback for when the request no longer waits for its reader.
  std::function<void()> on_unblocked;
  void Cancel() noexcept { interrupt_->Cancel(); }
  bool done() const;
  // Results of a request that is done.
  GenerateResult TakeResult() { return std::move(result_); }
  std::unique_ptr<TextCache> TakeCache() { return std::move(sequence_.cache); }
  std::vector<int32_t> TakeTokens() { return std::move(sequence_.tokens); }

  // --- the scheduler's side ---

  int64_t ticket = 0;  // in the order of submission
  // Tokens of the context that the slowest rank has yet to read.
  int64_t context_left = 0;

  RequestKind kind() const { return kind_; }
  const GenerateOptions& options() const { return options_; }
  const TextPlan& plan() const { return *plan_; }
  const std::shared_ptr<const TextPlan>& shared_plan() const { return plan_; }
  Interrupt& interrupt() const { return *interrupt_; }
  bool shares() const { return kind_ == RequestKind::kSubmitted; }
  // Whether its text may be saved, and go on from a saved one.
  bool may_be_saved() const { return kind_ != RequestKind::kStates && !keeps_to_itself_; }
  // Says that no reading gives this text's cache again (Session::ReuseTokens). It is not saved,
  // takes nothing from saved texts, and fails where it would be paused.
  void KeepToItself() { keeps_to_itself_ = true; }
  bool keeps_to_itself() const { return keeps_to_itself_; }
  // Lets a request of a session go on from texts of others, as those do that are submitted.
  void GoOnFromOthers() { goes_on_from_others_ = true; }
  bool goes_on_from_others() const {
    return shares() || (goes_on_from_others_ && !keeps_to_itself_);
  }
  const Sequence& sequence() const { return sequence_; }
  // The position at which the question begins (TextPlan::QuestionBegin).
  int64_t question_begin() const { return question_begin_; }
  int64_t prompt_tokens() const { return prompt_tokens_; }
  bool reads_prompt() const { return sequence_.pending() > 1 || context_left > 0; }
  // Whether the prompt is read in consecutive steps. A kStates request is not: its states are taken
  // in between, by a reader that may wait for other requests.
  bool reads_on() const { return reads_prompt() && kind_ != RequestKind::kStates; }
  // The most rows that the request can use in a decode step.
  int64_t max_rows() const { return strategy_->MaxRows(); }
  // Counts a step whose draft tokens found no memory, so that it ran without them.
  void CountStepShortOfMemory() { ++steps_short_of_memory_; }
  // Whether the request must wait until its events or states are read.
  bool waits_for_reader() const;

  // The reason for which the request should end, if there is one.
  std::optional<FinishReason> Expired() const;
  // Finishes a request that asks for no output or has no space left for any. True: it is done.
  bool FinishIfNothingIsAsked();
  // Makes the request run. False: it is already done.
  bool Begin();
  // Makes the request wait again, because there was no memory.
  void WaitOn();
  // Makes the request wait, with nothing cached.
  void Pause();
  // Goes on from `cache`, which holds a beginning of the text: at most all but its last token, and
  // no more than TextPlan::ReusableTokens allows. disk_tokens: the tokens of it that came from
  // saved texts.
  void ContinueFrom(std::unique_ptr<TextCache> cache, int64_t disk_tokens = 0);
  int64_t disk_tokens() const { return disk_tokens_; }
  // Drops the cached text, which turned out to be of no use, and reads it again.
  void ReadAgain();
  // Whether the text read since the last save is to be saved now: after so many tokens, so long a
  // time, or the prompt's end.
  bool IsToBeSaved(int64_t tokens, double ms);
  // Reserves memory for a step of so many tokens. False: there is none, and TakeReserveError has
  // the reason.
  bool Reserve(int64_t tokens);
  // Gives back the memory that the strategy took for draft tokens. False: it had none.
  bool ReleaseDrafts() { return strategy_->ReleaseMemory(); }
  // Gives back recurrent states to which the text could return. False: it had none.
  bool ReleaseKeptStates() { return sequence_.cache->ReleaseKeptStates(); }
  // The error of the last failed Reserve, once. An error has one owner at a time; its last owner
  // would else free it in a thread that nothing orders after its readers.
  std::exception_ptr TakeReserveError() { return std::exchange(reserve_error_, nullptr); }

  // The part of the request in a step that reads `tokens` of it.
  Participant PartOf(int64_t tokens);
  // Takes the results of a step. True: the request is done.
  bool Take(Participant& part);
  // Makes the request done. Its cache stays for TakeCache.
  void Finish(FinishReason reason);
  void Fail(std::exception_ptr error);

 private:
  enum class State { kWaiting, kRunning, kDone };
  FinishReason EndOfLimit() const;
  void KeepStates(MatrixView<const float> states);
  void TakeBegun();
  void TakeAccepted(std::span<const int32_t> tokens);
  struct Taken {
    size_t tokens;
    bool ended;  // the last of them ends the text
  };
  // Takes tokens of the output, up to its end.
  Taken TakeTokens(std::span<const int32_t> tokens);
  // Finishes a request whose output has ended.
  void FinishIfEnded(const Taken& taken);
  bool TakeToken(int32_t token, const LogprobRow* logprobs, std::string& text);
  void PostProgress();
  void Post(FunctionRef<void(Event&)> add);
  void SetDone(std::exception_ptr error);
  void FinishResult(FinishReason reason, std::string& text);

  std::shared_ptr<const TextPlan> plan_;
  GenerateOptions options_;
  std::vector<int32_t> eos_;
  std::shared_ptr<Interrupt> interrupt_;
  RequestKind kind_;
  bool keeps_to_itself_ = false;
  bool goes_on_from_others_ = false;
  Stopwatch watch_;
  int64_t limit_;  // limit of output tokens
  int64_t prompt_tokens_;
  int64_t question_begin_;
  bool cached_known_ = false;
  int64_t disk_tokens_ = 0;
  int64_t saved_tokens_ = 0;
  double saved_ms_ = 0;
  bool read_prompt_ = false;  // whether the prompt had been read at the last save
  Sequence sequence_;
  std::unique_ptr<Strategy> strategy_;
  const DraftStats* draft_stats_ = nullptr;  // the strategy's, if it has drafts
  int64_t steps_short_of_memory_ = 0;
  TextOutput output_;
  std::optional<ThoughtWatch> thought_;
  ReadingPace pace_;
  std::vector<LogprobRow> logprobs_;  // for tokens that the last step accepted
  std::function<void(MatrixView<const float>)> on_states_;
  std::function<void(std::span<const float>)> on_choice_;
  GenerateResult result_;
  std::exception_ptr reserve_error_;

  std::atomic<State> state_{State::kWaiting};
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable posted_;
  Event unread_;
  bool has_event_ = false;
  std::optional<ReadStates> states_;
  bool done_ = false;
  std::exception_ptr error_;
};

}  // namespace godwit
