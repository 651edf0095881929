// What an Engine and a Session own, for the files of this room.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "attention/rank_speed.h"
#include "base/function_ref.h"
#include "base/stopwatch.h"
#include "base/thread_pool.h"
#include "dist/communicator.h"
#include "engine/interrupt.h"
#include "engine/saved_texts.h"
#include "engine/scheduler.h"
#include "engine/text_plan.h"
#include "generate/head_drafts.h"
#include "generate/speculative.h"
#include "godwit/engine.h"
#include "kernels/dispatch.h"
#include "kv/kv_pool.h"
#include "model/decoder.h"
#include "model/language_model.h"
#include "model/spec.h"
#include "text/chat_template.h"
#include "text/json_grammar.h"
#include "text/special_tokens.h"
#include "text/tokenizer.h"

namespace godwit {

// Immutable after construction, but for the caches' memory and the scheduler, which see to that
// themselves.
class Engine::Impl {
 public:
  // ranks: that share every text; null: nobody.
  Impl(const std::string& folder, const LoadOptions& options,
       std::shared_ptr<Communicator> ranks = nullptr);
  // Rank 0 lets the others go.
  ~Impl();
  // For tests: any model, any tokenizer (may be null), any clock by which guesses are weighed.
  Impl(std::unique_ptr<const LanguageModel> model, DecoderSpec spec,
       std::unique_ptr<const Tokenizer> tokenizer, SpecialTokens special,
       const LoadOptions& options, NowMs now_ms = SteadyMs);

  // What the caches of all texts may take together.
  int64_t kv_memory_bytes() const { return kv_budget_->bytes(); }
  // Where texts of that type are cached.
  std::shared_ptr<KvPool> PoolOf(DType kv_type) const;

  // A request for `prompt` (TextPlan::WithSink) that is checked and still to be submitted. Throws
  // Error(kInput) for what makes no sense.
  std::shared_ptr<Request> NewRequest(std::shared_ptr<const TextPlan> plan,
                                      std::vector<int32_t> prompt, const GenerateOptions& options,
                                      std::shared_ptr<Interrupt> interrupt, RequestKind kind) const;

  // Throws Error(kUnsupported) if the folder had no tokenizer.
  const Tokenizer& RequireTokenizer() const;
  // Engine::FollowRankZero. on_result: what came of a request that was not refused by all.
  void FollowRankZero(const std::function<void(GenerateResult)>& on_result = {}) const;
  // Throws Error(kUnsupported) on a rank that is to follow rank 0.
  void RequireRankZero() const;
  // Throws Error(kUnsupported) if nothing is saved.
  SavedTexts& RequireSavedTexts() const;
  // On what cached keys and values depend that this engine makes, besides how texts are read.
  const SnapshotFacts& facts() const { return facts_; }
  // Null where the model has none. Read when it is first asked for: a broken one stands in the way
  // of chats only.
  const ChatTemplate* FindChatTemplate() const;

  std::string folder;
  // Where a chat template would stand, for messages.
  std::string template_place = "chat_template.jinja, or chat_template in tokenizer_config.json";
  std::shared_ptr<Communicator> ranks;
  std::vector<RankSpeed> rank_speeds;
  DecoderSpec spec;
  SamplerDefaults sampler_defaults;
  WeightTypes weight_types{.layers = DType::kF32, .head = DType::kF32};
  int64_t weight_bytes = 0;
  LoadTimes load_times;
  std::shared_ptr<const Tokenizer> tokenizer;
  SpecialTokens special;
  std::unique_ptr<const LanguageModel> model;
  const kernels::Isa& isa;
  std::vector<int> cpus;  // of the threads that compute, if they are pinned
  mutable ThreadPool pool;

 private:
  // Null: it asks for none.
  std::unique_ptr<Speculative> DraftedBy(const GenerateOptions& options,
                                         const TextPlan& plan) const;
  // Read when they are first asked for. Throws Error(kInput) where the model has none.
  std::shared_ptr<HeadBatch> Heads() const;

  NowMs now_ms_ = SteadyMs;
  uint64_t states_digest_ = 0;
  int64_t mapped_bytes_ = 0;  // Decoder::mapped_bytes
  mutable std::mutex finding_heads_;
  mutable std::shared_ptr<HeadBatch> heads_;  // of which the scheduler asks

  std::optional<JsonGrammar> json_grammar_;  // from Start on

  std::string template_choice_;
  std::map<std::string, std::string> named_tokens_;
  mutable std::mutex finding_template_;
  mutable bool template_found_ = false;
  mutable std::optional<ChatTemplate> chat_template_;

  void Start(const LoadOptions& options);

  SnapshotFacts facts_;  // if texts are saved

  std::shared_ptr<KvFile> kv_file_;  // null: the caches lie in memory
  std::shared_ptr<KvBudget> kv_budget_;
  mutable std::mutex pools_mutex_;
  mutable std::map<DType, std::shared_ptr<KvPool>> pools_;

 public:
  // Null: nothing is saved.
  mutable std::unique_ptr<SavedTexts> saved;
  // Last: its thread uses all of the above.
  mutable std::unique_ptr<Scheduler> scheduler;
};

class Session::Impl {
 public:
  Impl(std::shared_ptr<const Engine::Impl> engine, const SessionOptions& options)
      : Impl(engine, std::make_shared<const TextPlan>(*engine, options)) {}
  Impl(std::shared_ptr<const Engine::Impl> engine, std::shared_ptr<const TextPlan> plan);

  std::vector<int32_t> Tokenize(std::string_view text, bool add_special) const;
  FillPrompt PromptToFill(const FillIn& fill) const;
  GenerateResult Generate(std::span<const int32_t> prompt, const GenerateOptions& options);
  void Logits(std::span<const int32_t> tokens,
              const std::function<void(int64_t, std::span<const float>)>& row, int64_t first,
              const std::function<void(const PromptProgress&)>& on_progress);
  int64_t Save();
  int64_t Load(const std::string& name);
  void Cancel() noexcept { interrupt_->Cancel(); }
  std::unique_ptr<Impl> Fork() const;
  std::span<const int32_t> tokens() const;
  KvReport kv() const;
  int64_t limit_tokens() const;
  int64_t learned_positions() const { return Geometry(engine_->spec).learned_positions; }

 private:
  // A prompt's ids, of which `encode` may leave those beyond a limit away.
  std::vector<int32_t> WithinLimits(
      FunctionRef<std::vector<int32_t>(int64_t max_ids)> encode) const;
  // What is cached of the request's text, taken out of the session: `most` tokens or fewer.
  std::unique_ptr<TextCache> TakePrefix(const Request& request, int64_t most);
  // Submits it and reads its events to the last one. Throws what ended it, or what on_event threw.
  // Whatever happens, the session keeps what has been read.
  void Follow(std::shared_ptr<Request> request, FunctionRef<void(const Event&)> on_event);
  // What it has read, if texts are to be remembered.
  void LeaveToOthers(const Request& request);

  std::shared_ptr<const Engine::Impl> engine_;
  std::shared_ptr<const TextPlan> plan_;
  std::shared_ptr<Interrupt> interrupt_ = std::make_shared<Interrupt>();

  mutable std::mutex mutex_;   // a call holds it to its end
  std::vector<int32_t> text_;  // the last prompt and its output
  std::unique_ptr<TextCache> cache_;
  int64_t ask_from_ = 0;  // of that text: Request::ask_from
};

}  // namespace godwit
