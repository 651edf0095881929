// The members of an Engine and a Session, for the files of this room.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/stopwatch.h"
#include "base/thread_pool.h"
#include "dist/communicator.h"
#include "engine/draft_model.h"
#include "engine/engine_group.h"
#include "engine/interrupt.h"
#include "engine/saved_texts.h"
#include "engine/scheduler.h"
#include "engine/served_model.h"
#include "engine/text_plan.h"
#include "generate/head_drafts.h"
#include "generate/speculative.h"
#include "godwit/engine.h"
#include "kernels/dispatch.h"
#include "model/decoder.h"
#include "model/language_model.h"
#include "tensor/view.h"
#include "text/chat_template.h"
#include "text/json_grammar.h"
#include "text/special_tokens.h"
#include "text/tokenizer.h"

namespace godwit {

// The members of an Engine. Immutable after construction, except the caches' memory and the
// scheduler, which are thread-safe themselves.
class Engine::Impl {
 public:
  // ranks: the ranks that share every text; null: none.
  Impl(const std::string& folder, const LoadOptions& options,
       std::shared_ptr<Communicator> ranks = nullptr);
  // Ends the engine; rank 0 lets the others go.
  ~Impl();
  // Makes an engine for tests: any model, any tokenizer (may be null), any clock by which draft
  // tokens are weighed.
  Impl(std::unique_ptr<const LanguageModel> model, DecoderSpec spec,
       std::unique_ptr<const Tokenizer> tokenizer, SpecialTokens special,
       const LoadOptions& options, NowMs now_ms = SteadyMs);
  // Gives the engine a draft model, before its first request.
  void Take(std::unique_ptr<const DraftModel> draft);

  // Makes a request for `prompt` (TextPlan::WithSink) that is checked and still to be submitted.
  // Throws Error(kInput) for options that make no sense.
  std::shared_ptr<Request> NewRequest(std::shared_ptr<const TextPlan> plan,
                                      std::vector<int32_t> prompt, const GenerateOptions& options,
                                      std::shared_ptr<Interrupt> interrupt, RequestKind kind) const;

  // Engine::PriceOf, and Engine::ExplainPrefix.
  RequestPrice PriceOf(std::span<const int32_t> prompt, const GenerateOptions& options,
                       const SessionOptions& session) const;
  RequestPrice PriceOf(std::span<const int32_t> prompt, const PassagePlaces& passages,
                       const GenerateOptions& options, const SessionOptions& session) const;
  PrefixReport ExplainPrefix(std::span<const int32_t> prompt, const GenerateOptions& options,
                             const SessionOptions& session) const;
  // Probes the costs of steps such as those of the request, unless they were probed before.
  void ProbeCostsFor(const Request& request, int64_t chunk_tokens) const;
  // The same for tokens that are taken from other texts.
  void ProbeReuseFor(const Request& request) const;
  // ReuseTokens between steps of the model, as a cost that is measured.
  void Reuse(Interrupt& interrupt, const TextPlan& plan, const TextCache& from, int64_t begin,
             int64_t count, TextCache& text) const;
  // Engine::Facts.
  SnapshotFacts Facts(const SessionOptions& session) const;
  // Throws Error(kUnsupported) if the folder had no tokenizer.
  const Tokenizer& RequireTokenizer() const;
  // Engine::FollowRankZero. on_forgotten: RankFollower::Follow.
  void FollowRankZero(const std::function<void(std::span<const int32_t>)>& on_forgotten = {}) const;
  // LanguageModel::Logits, on the scheduler's thread, of rows [rows, hidden] one behind another.
  // Ranks that share the weights compute them together.
  void Logits(const Exec& exec, MatrixView<const float> hidden, MatrixView<float> logits) const;
  // Throws Error(kUnsupported) on a rank that is to follow rank 0.
  void RequireRankZero() const;
  // Throws Error(kUnsupported) if nothing is saved.
  SavedTexts& RequireSavedTexts() const;
  // The chat template; null if the model has none. Read on first use: a broken one affects chats
  // only.
  const ChatTemplate* FindChatTemplate() const;

  std::string folder;
  // The place in which a chat template would be, for messages.
  std::string template_place = "chat_template.jinja, or chat_template in tokenizer_config.json";
  ServedModel served;
  SamplerDefaults sampler_defaults;
  int64_t weight_bytes = 0;
  DeviceUse device;
  LoadTimes load_times;
  std::unique_ptr<const DraftModel> draft_model;  // LoadOptions::draft_model; null: none
  std::shared_ptr<const Tokenizer> tokenizer;
  SpecialTokens special;
  std::unique_ptr<const LanguageModel> model;
  const kernels::Isa& isa;
  const std::shared_ptr<EngineGroup::Impl> group;
  ThreadPool& pool;  // the group's

 private:
  // The strategy for GenerateOptions::draft; null: no drafts.
  std::unique_ptr<Speculative> NewSpeculation(const GenerateOptions& options,
                                              const TextPlan& plan) const;
  // Throws Error(kUnsupported) for this source of draft tokens if ranks share the weights.
  void RequireAllWeights(std::string_view draft) const;
  // Draft tokens by the layer that predicts. Throws Error where none is loaded.
  std::unique_ptr<DraftSource> Predictions() const;
  // Draft tokens by the EAGLE-3 head. head_folder: where it came from; empty: wherever that is.
  // Throws Error where none is loaded, or another.
  std::unique_ptr<DraftSource> Eagle3(std::string_view head_folder) const;
  // The draft model, for this source of draft tokens. Throws Error where none is loaded.
  const DraftModel& RequireDraftModel(std::string_view draft) const;
  // The folder of the draft model, whose tokens are the model's; nothing: none is asked for.
  std::optional<ModelFolder> OpenDraft(const LoadOptions& options) const;
  // Throws Error(kUnsupported) for this source of draft tokens if ranks share the texts.
  void RequireOneRank(std::string_view draft) const;
  // The draft heads, read on first use. Throws Error(kInput) where the model has none.
  std::shared_ptr<HeadBatch> Heads() const;

  NowMs now_ms_ = SteadyMs;
  uint64_t states_digest_ = 0;
  std::string eagle3_folder_;     // empty: no head is loaded
  std::shared_ptr<void> mapped_;  // EngineGroup::Impl::HoldMapped
  mutable std::mutex heads_mutex_;
  mutable std::shared_ptr<HeadBatch> heads_;  // used by the scheduler's thread

  std::optional<JsonGrammar> json_grammar_;  // from Start on

  std::string template_choice_;
  std::map<std::string, std::string> named_tokens_;
  mutable std::mutex facts_mutex_;
  mutable SnapshotFacts facts_;  // FactsOf; empty: not looked at yet

  mutable std::mutex template_mutex_;
  mutable bool template_found_ = false;
  mutable std::optional<ChatTemplate> chat_template_;

  // mapped_bytes: Decoder::mapped_bytes.
  void Start(const LoadOptions& options, int64_t mapped_bytes);

 public:
  // The saved texts; null: nothing is saved.
  mutable std::unique_ptr<SavedTexts> saved;
  // The scheduler, last, because its thread uses all members above.
  mutable std::unique_ptr<Scheduler> scheduler;
};

// Throws Error(kUnsupported) for texts that cannot have a passage or, with `joins`, cannot join it
// to others, before anything is read.
void RequirePassages(const TextPlan& plan, bool joins);

class Session::Impl {
 public:
  Impl(std::shared_ptr<const Engine::Impl> engine, const SessionOptions& options)
      : Impl(engine, std::make_shared<const TextPlan>(engine->served, options)) {}
  Impl(std::shared_ptr<const Engine::Impl> engine, std::shared_ptr<const TextPlan> plan);

  std::vector<int32_t> Tokenize(std::string_view text, bool add_special) const;
  FillPrompt PromptToFill(const FillIn& fill) const;
  GenerateResult Generate(std::span<const int32_t> prompt, const GenerateOptions& options);
  void Logits(std::span<const int32_t> tokens,
              const std::function<void(int64_t, std::span<const float>)>& row, int64_t first,
              const std::function<void(const PromptProgress&)>& on_progress);
  void HiddenStates(std::span<const int32_t> tokens,
                    const std::function<void(int64_t, std::span<const float>)>& row, int64_t first,
                    const std::function<void(const PromptProgress&)>& on_progress);
  void ReadContext(std::span<const int32_t> context,
                   const std::function<void(const PromptProgress&)>& on_progress);
  bool GoOnFrom(const Impl& other);
  void ReuseTokens(const Impl& other, int64_t begin, int64_t end);
  PassagesRead ReadPassages(std::span<const int32_t> head,
                            std::span<const std::vector<int32_t>> passages, int64_t read_anew,
                            const std::function<void(const PromptProgress&)>& on_progress);
  int64_t Save();
  int64_t Load(const std::string& name);
  void Cancel() noexcept { interrupt_->Cancel(); }
  std::unique_ptr<Impl> Fork() const;
  std::span<const int32_t> tokens() const;
  KvReport kv() const;
  int64_t limit_tokens() const;
  int64_t learned_positions() const { return engine_->served.geometry().learned_positions; }

 private:
  // Parts of a call that holds the session's lock, and an interruption of which is still heard.
  // shares: the text is shared with others in memory, too, as those of submitted requests are.
  void Read(std::span<const int32_t> context,
            const std::function<void(const PromptProgress&)>& on_progress, bool shares = false);
  void Reuse(const Impl& other, int64_t begin, int64_t end);
  std::unique_ptr<Impl> ForkLocked() const;
  // The ids of a prompt. `encode` may leave out ids beyond the limit that it is given.
  std::vector<int32_t> WithinLimits(
      FunctionRef<std::vector<int32_t>(int64_t max_ids)> encode) const;
  // Takes the cached part of the request's text out of the session: `most` tokens or fewer.
  std::unique_ptr<TextCache> TakePrefix(const Request& request, int64_t most);
  // Submits the request and reads its events to the last one. Throws the error that ended it, or
  // one that on_event threw. In any case the session keeps what has been read.
  void Follow(std::shared_ptr<Request> request, FunctionRef<void(const Event&)> on_event);
  // Reads the text, and hands over the hidden states [rows, hidden] of its positions from `first`
  // on, chunk by chunk.
  void FollowStates(std::span<const int32_t> tokens, int64_t first,
                    FunctionRef<void(int64_t position, MatrixView<const float> states)> take,
                    const std::function<void(const PromptProgress&)>& on_progress);
  // Leaves the text that the request has read to others, if texts are to be remembered.
  void ShareText(const Request& request);

  std::shared_ptr<const Engine::Impl> engine_;
  std::shared_ptr<const TextPlan> plan_;
  std::shared_ptr<Interrupt> interrupt_ = std::make_shared<Interrupt>();

  mutable std::mutex mutex_;   // a call holds it to its end
  std::vector<int32_t> text_;  // the last prompt and its output
  std::unique_ptr<TextCache> cache_;
  std::shared_ptr<const TextPlan> read_by_;  // the plan of cache_ (TextPlan::ForPrompt)
  int64_t question_begin_ = 0;               // Request::question_begin of that text
  struct Joined {
    // The first token that ReuseTokens appended. From there on the text is this session's alone.
    int64_t from = INT64_MAX;
    // The numbers of ReadPassages, and the length of its text. Nothing: this is another text.
    std::optional<PassageReport> passages;
    int64_t end = 0;
  };
  Joined joined_;
};

}  // namespace godwit
