// What an Engine and a Session own, for the files of this room.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/stopwatch.h"
#include "base/thread_pool.h"
#include "engine/kv_mode.h"
#include "engine/text_output.h"
#include "generate/sequence.h"
#include "generate/strategy.h"
#include "godwit/engine.h"
#include "kernels/dispatch.h"
#include "model/decoder.h"
#include "model/language_model.h"
#include "model/spec.h"
#include "tensor/workspace.h"
#include "text/chat_template.h"
#include "text/special_tokens.h"
#include "text/tokenizer.h"

namespace godwit {

// Immutable after construction, but for the pool and workspace, which the mutex lends to one call
// at a time.
class Engine::Impl {
 public:
  Impl(const std::string& folder, const LoadOptions& options);
  // For tests: any model, any tokenizer (may be null).
  Impl(std::unique_ptr<const LanguageModel> model, DecoderSpec spec,
       std::unique_ptr<const Tokenizer> tokenizer, SpecialTokens special, int threads);

  // Throws Error(kUnsupported) if the folder had no tokenizer.json.
  const Tokenizer& RequireTokenizer() const;
  // Null where the model has none. Read when it is first asked for: a broken one stands in the way
  // of chats only.
  const ChatTemplate* FindChatTemplate() const;

  std::string folder;
  DecoderSpec spec;
  SamplerDefaults sampler_defaults;
  WeightTypes weight_types{.layers = DType::kF32, .head = DType::kF32};
  int64_t weight_bytes = 0;
  std::shared_ptr<const Tokenizer> tokenizer;
  SpecialTokens special;
  std::unique_ptr<const LanguageModel> model;
  const kernels::Isa& isa;

  mutable ThreadPool pool;
  mutable Workspace workspace;
  mutable std::timed_mutex computing;

 private:
  std::string template_choice_;
  std::map<std::string, std::string> named_tokens_;
  mutable std::mutex finding_template_;
  mutable bool template_found_ = false;
  mutable std::optional<ChatTemplate> chat_template_;
};

class Session::Impl {
 public:
  Impl(const Engine::Impl& engine, const SessionOptions& options);

  std::vector<int32_t> Tokenize(std::string_view text, bool add_special) const;
  GenerateResult Generate(std::span<const int32_t> prompt, const GenerateOptions& options);
  void Logits(std::span<const int32_t> tokens,
              const std::function<void(int64_t, std::span<const float>)>& row, int64_t first,
              const std::function<void(const PromptProgress&)>& on_progress);
  KvReport kv() const;
  int64_t max_tokens() const;
  // The text with the model's sink token in front, where it has one and the text has not.
  std::vector<int32_t> WithSink(std::span<const int32_t> tokens) const;

  CancelToken cancel;
  std::vector<int32_t> text;  // the last prompt and its output

 private:
  void CheckPrompt(std::span<const int32_t> prompt) const;
  // `tokens`: "40 tokens". `fits`: the hint at a context that holds them, or nothing.
  [[noreturn]] void RefuseLength(const std::string& tokens, const std::string& fits) const;
  // Takes the sequence back to what it shares with `prompt`, `most` tokens or fewer; returns how
  // many.
  int64_t ReusePrefix(std::span<const int32_t> prompt, int64_t most);
  Exec MakeExec() const;
  // Adds up to `limit` tokens to the sequence and the result.
  void Continue(Sequence& sequence, int64_t limit, const GenerateOptions& options,
                const Stopwatch& watch, TextOutput& output, GenerateResult& result);
  void Keep(Sequence& sequence);

  const Engine::Impl& engine_;
  SessionOptions options_;
  PolicyOptions policy_options_;
  KvMode kv_mode_;
  std::unique_ptr<AttentionPolicy> policy_;
};

}  // namespace godwit
