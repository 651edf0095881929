#include <algorithm>
#include <utility>

#include "base/cancellable_lock.h"
#include "base/error.h"
#include "engine/engine_impl.h"
#include "engine/memory_plan.h"
#include "engine/storage_types.h"
#include "engine/text_output.h"
#include "generate/autoregressive.h"

namespace godwit {
namespace {

int64_t ContextOf(const SessionOptions& options, const DecoderSpec& spec) {
  if (options.context_tokens < 0) {
    Throw(ErrorKind::kInput, "a context of {} tokens, expected at least 1, or 0 for the model's",
          options.context_tokens);
  }
  return options.context_tokens == 0 ? DefaultContext(spec) : options.context_tokens;
}

}  // namespace

Session::Impl::Impl(const Engine::Impl& engine, const SessionOptions& options)
    : engine_(engine),
      options_(options),
      policy_options_{.spec = options.kv,
                      .kv_type = ChooseKvType(options.kv_type, engine.weight_types),
                      .int8_products = options.int8_attention,
                      .context = ContextOf(options, engine.spec),
                      .max_step_tokens = options.chunk_tokens},
      kv_mode_(*engine.model, Geometry(engine.spec), policy_options_) {
  if (options.chunk_tokens < 1 || options.chunk_tokens > 1 << 20) {
    Throw(ErrorKind::kInput, "prompt chunks of {} tokens, expected 1 to {}", options.chunk_tokens,
          1 << 20);
  }
  policy_ = kv_mode_.NewPolicy();
}

Exec Session::Impl::MakeExec() const {
  return {.pool = engine_.pool,
          .kernels = *engine_.isa.table,
          .workspace = engine_.workspace,
          .cancel = &cancel};
}

std::vector<int32_t> Session::Impl::WithSink(std::span<const int32_t> tokens) const {
  const std::optional<int32_t> sink = engine_.spec.sink_token;
  const bool add = sink && !tokens.empty() && tokens.front() != *sink;
  std::vector<int32_t> text;
  text.reserve(tokens.size() + 1);
  if (add) text.push_back(*sink);
  text.insert(text.end(), tokens.begin(), tokens.end());
  return text;
}

std::vector<int32_t> Session::Impl::Tokenize(std::string_view text, bool add_special) const {
  // Up to what the model was made for: the number is then the advice.
  const int64_t most = std::max(max_tokens(), engine_.spec.max_context);
  auto tokens = engine_.RequireTokenizer().Encode(text, add_special, most);
  if (std::ssize(tokens) > most) RefuseLength(fmt::format("more than {} tokens", most), "");
  return tokens;
}

void Session::Impl::RefuseLength(const std::string& tokens, const std::string& fits) const {
  const int64_t limit = policy_->max_length();
  const int64_t most = engine_.spec.max_context;
  const std::string stream = fmt::format(
      ", or stream it with --kv sinks:4+{}, which keeps the beginning and the last tokens only",
      std::max<int64_t>(1, std::min(limit, most) - 4));
  Throw(ErrorKind::kInput,
        "the prompt has {} and the context holds {} (the model was made for up to {}): shorten the "
        "prompt{}{}",
        tokens, limit, most, fits, engine_.spec.first_learned_position ? "" : stream);
}

void Session::Impl::CheckPrompt(std::span<const int32_t> prompt) const {
  const auto n = static_cast<int64_t>(prompt.size());
  if (n == 0) Throw(ErrorKind::kInput, "the prompt is empty: there is nothing to continue");
  for (const int32_t token : prompt) {
    if (token < 0 || token >= engine_.spec.vocab_size) {
      Throw(ErrorKind::kInput, "token id {} is outside the model's vocabulary of {}", token,
            engine_.spec.vocab_size);
    }
  }
  const int64_t limit = policy_->max_length();
  if (n > limit) {
    const bool fits = n <= engine_.spec.max_context;
    RefuseLength(fmt::format("{} tokens", n),
                 fits ? fmt::format(", raise the context with -c {}", n) : "");
  }
  if (limit != INT64_MAX) {  // a cache that grows
    CheckKvFits(Geometry(engine_.spec), policy_options_.kv_type, n - policy_->length());
  }
}

int64_t Session::Impl::ReusePrefix(std::span<const int32_t> prompt, int64_t most) {
  const auto differ = std::mismatch(prompt.begin(), prompt.end(), text.begin(), text.end());
  const int64_t shared =
      std::min({static_cast<int64_t>(differ.first - prompt.begin()), policy_->length(), most});
  if (shared > 0 && policy_->CanTruncate(shared)) {
    policy_->Truncate(shared);
    return shared;
  }
  policy_ = kv_mode_.NewPolicy();
  return 0;
}

GenerateResult Session::Impl::Generate(std::span<const int32_t> prompt,
                                       const GenerateOptions& options) {
  const Stopwatch watch;
  cancel.Reset();  // it was meant for an earlier call
  CheckPrompt(prompt);
  if (options.max_tokens < -1) {
    Throw(ErrorKind::kInput, "max_tokens must be at least 0, or -1 for no limit, not {}",
          options.max_tokens);
  }
  if (!options.stop.empty()) engine_.RequireTokenizer();
  Sampler sampler(options.sampler, static_cast<int32_t>(engine_.spec.vocab_size));
  TextOutput output(engine_.tokenizer.get(), prompt, options, &cancel);
  GenerateResult result;
  result.prompt_tokens = static_cast<int64_t>(prompt.size());
  std::unique_lock<std::timed_mutex> lock;
  try {
    lock = CancellableLock(engine_.computing, &cancel);
  } catch (const Error&) {
    result.finish_reason = FinishReason::kCancelled;
    result.kv = kv();
    result.prompt_ms = watch.ms();
    return result;
  }
  // The last token is read again in any case: its logits begin the output.
  result.cached_tokens = ReusePrefix(prompt, result.prompt_tokens - 1);
  const int64_t room = policy_->max_length() - result.prompt_tokens;
  const int64_t limit = options.max_tokens < 0 ? room : std::min(room, options.max_tokens);
  // So that a decode loop allocates nothing; longer outputs grow on their way.
  constexpr int64_t kReservedTokens = 1 << 17;
  result.tokens.reserve(static_cast<size_t>(std::min(limit, kReservedTokens)));

  // Before the policy leaves the session: memory may run out here.
  std::vector<int32_t> tokens;
  tokens.reserve(prompt.size() + result.tokens.capacity());
  tokens.assign(prompt.begin(), prompt.end());
  Sequence sequence{.tokens = std::move(tokens),
                    .policy = std::move(policy_),
                    .sampler = std::move(sampler),
                    .id = options.sequence};
  try {
    Continue(sequence, limit, options, watch, output, result);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kCancelled) {
      Keep(sequence);
      throw;
    }
    result.finish_reason = FinishReason::kCancelled;
  } catch (...) {
    Keep(sequence);
    throw;
  }
  Keep(sequence);
  const int64_t read = std::min(policy_->length(), result.prompt_tokens);
  result.read_tokens = std::max<int64_t>(0, read - result.cached_tokens);
  result.text = output.Finish();
  // Decoders hold text back that a later token could change: it may end in a stop string.
  if (result.finish_reason != FinishReason::kCancelled && output.stopped()) {
    result.finish_reason = FinishReason::kStop;
  }
  result.stop = output.stop();
  result.kv = kv();
  if (result.tokens.empty()) result.prompt_ms = watch.ms();
  result.predicted_ms = watch.ms() - result.prompt_ms;
  return result;
}

void Session::Impl::Continue(Sequence& sequence, int64_t limit, const GenerateOptions& options,
                             const Stopwatch& watch, TextOutput& output, GenerateResult& result) {
  const auto& eos = engine_.special.eos_ids;
  const Exec exec = MakeExec();
  Autoregressive strategy(kv_mode_.model(), options_.chunk_tokens);
  result.finish_reason =
      limit == options.max_tokens ? FinishReason::kLength : FinishReason::kContextFull;
  while (static_cast<int64_t>(result.tokens.size()) < limit) {
    const auto accepted = strategy.Step(sequence, exec);
    if (options.on_progress && result.tokens.empty()) {
      options.on_progress({.done_tokens = sequence.policy->length(),
                           .total_tokens = result.prompt_tokens,
                           .cached_tokens = result.cached_tokens,
                           .elapsed_ms = watch.ms()});
    }
    if (!accepted.empty() && result.tokens.empty()) result.prompt_ms = watch.ms();
    for (const int32_t token : accepted) {
      if (static_cast<int64_t>(result.tokens.size()) == limit) return;
      result.tokens.push_back(token);
      const bool ends =
          !options.ignore_eos && std::find(eos.begin(), eos.end(), token) != eos.end();
      if (!ends) output.Push(token);
      if (ends || output.stopped()) {
        result.finish_reason = FinishReason::kStop;
        return;
      }
    }
  }
}

// Whatever happened, the session keeps what has been read.
void Session::Impl::Keep(Sequence& sequence) {
  policy_ = std::move(sequence.policy);
  text = std::move(sequence.tokens);
}

void Session::Impl::Logits(std::span<const int32_t> tokens,
                           const std::function<void(int64_t, std::span<const float>)>& row,
                           int64_t first,
                           const std::function<void(const PromptProgress&)>& on_progress) {
  const Stopwatch watch;
  cancel.Reset();  // it was meant for an earlier call
  CheckPrompt(tokens);
  const auto total = static_cast<int64_t>(tokens.size());
  const auto lock = CancellableLock(engine_.computing, &cancel);
  const Exec exec = MakeExec();
  const int64_t cached = ReusePrefix(tokens, first);
  text.assign(tokens.begin(), tokens.end());

  // A block of logits [kBlock, vocab] at a time: a long text has gigabytes of them.
  constexpr int64_t kBlock = 64;
  for (int64_t begin = cached; begin < total; begin += options_.chunk_tokens) {
    const int64_t n = std::min(options_.chunk_tokens, total - begin);
    Workspace::Scope scope(exec.workspace);
    const auto hidden = exec.workspace.Matrix<float>(n, kv_mode_.model().hidden_size());
    const Segment segment{tokens.subspan(static_cast<size_t>(begin), static_cast<size_t>(n)),
                          policy_.get()};
    kv_mode_.model().Forward(exec, {&segment, 1}, hidden);
    const auto logits = exec.workspace.Matrix<float>(std::min(n, kBlock), engine_.spec.vocab_size);
    for (int64_t at = std::max<int64_t>(0, first - begin); at < n; at += kBlock) {
      const int64_t rows = std::min(kBlock, n - at);
      kv_mode_.model().Logits(exec, hidden.Rows(at, at + rows), logits.Rows(0, rows));
      for (int64_t i = 0; i < rows; ++i) row(begin + at + i, logits.RowSpan(i));
    }
    if (!on_progress) continue;
    on_progress({.done_tokens = begin + n,
                 .total_tokens = total,
                 .cached_tokens = cached,
                 .elapsed_ms = watch.ms()});
  }
}

int64_t Session::Impl::max_tokens() const {
  const int64_t most = policy_->max_length();
  return most == INT64_MAX || !engine_.spec.sink_token ? most : most - 1;
}

KvReport Session::Impl::kv() const {
  const KvStats stats = policy_->Stats();
  return {.policy = stats.policy,
          .seen = stats.seen,
          .kept = stats.kept,
          .first_dropped = stats.first_dropped,
          .bytes = stats.bytes};
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

std::vector<int32_t> Session::Tokenize(std::string_view text, bool add_special) const {
  return impl_->Tokenize(text, add_special);
}

GenerateResult Session::Generate(std::span<const int32_t> prompt, const GenerateOptions& options) {
  return impl_->Generate(impl_->WithSink(prompt), options);
}

void Session::Logits(
    std::span<const int32_t> tokens,
    const std::function<void(int64_t position, std::span<const float> logits)>& row, int64_t first,
    const std::function<void(const PromptProgress&)>& on_progress) {
  // An empty text is refused as such.
  if (first < 0 || (first > 0 && first >= std::ssize(tokens))) {
    Throw(ErrorKind::kInput, "logits from position {} on, expected one of the text's {} positions",
          first, tokens.size());
  }
  const std::vector<int32_t> text = impl_->WithSink(tokens);
  const int64_t added = std::ssize(text) - std::ssize(tokens);
  impl_->Logits(
      text, [&](int64_t position, std::span<const float> logits) { row(position - added, logits); },
      first + added, on_progress);
}

void Session::Cancel() noexcept { impl_->cancel.Cancel(); }
std::span<const int32_t> Session::tokens() const { return impl_->text; }
KvReport Session::kv() const { return impl_->kv(); }
int64_t Session::max_tokens() const { return impl_->max_tokens(); }

}  // namespace godwit
