#include <algorithm>
#include <utility>

#include "attention/core/reuse_text.h"
#include "attention/policies/prefill_spec.h"
#include "attention/ranks/choose_prefill.h"
#include "base/error.h"
#include "base/quote.h"
#include "engine/engine_impl.h"

namespace godwit {
namespace {

// The counting limit for texts that are too long anyway.
constexpr int64_t kMaxCounted = 250'000;

// Refuses to join passages that are read in another way with each length of a prompt.
void RequireOneReading(const std::string& prefill) {
  const bool is_open =
      prefill == kAutoPrefill || (!prefill.empty() && ParsePrefill(prefill).quarter);
  if (!is_open) return;
  Throw(ErrorKind::kUnsupported,
        "passages cannot be taken from the cache with the prefill {}, which reads a passage in "
        "another way in each prompt: give its block a number of tokens, or leave it out",
        prefill);
}

}  // namespace

void RequirePassages(const TextPlan& plan, bool joins) {
  RequireOneReading(plan.options().prefill);
  if (!joins) return;
  const auto text = plan.NewText();
  RequireReuse(*text);
  if (!text->policy().facts().endless()) return;
  Throw(ErrorKind::kUnsupported,
        "passages cannot be taken from the cache with the KV policy {}, which forgets tokens",
        text->policy().facts().name);
}

Session::Impl::Impl(std::shared_ptr<const Engine::Impl> engine,
                    std::shared_ptr<const TextPlan> plan)
    : engine_(std::move(engine)),
      plan_(std::move(plan)),
      cache_(plan_->NewText()),
      read_by_(plan_) {}

std::vector<int32_t> Session::Impl::WithinLimits(
    FunctionRef<std::vector<int32_t>(int64_t max_ids)> encode) const {
  // Texts up to the model's maximum context are counted, and the number becomes the advice.
  const int64_t most = std::max(limit_tokens(), engine_->served.spec.max_context);
  auto tokens = encode(most);
  if (std::ssize(tokens) <= most) return tokens;
  // The number of tokens says what would help. It is counted within limits.
  const int64_t max_counted = std::max(4 * most, kMaxCounted);
  const int64_t count = std::ssize(encode(max_counted));
  if (count <= max_counted) plan_->RefuseLength(fmt::format("{} tokens", count), count);
  plan_->RefuseLength(fmt::format("more than {} tokens", max_counted), max_counted + 1);
}

std::vector<int32_t> Session::Impl::Tokenize(std::string_view text, bool add_special) const {
  const Tokenizer& tokenizer = engine_->RequireTokenizer();
  return WithinLimits(
      [&](int64_t max_ids) { return tokenizer.Encode(text, add_special, max_ids); });
}

FillPrompt Session::Impl::PromptToFill(const FillIn& fill) const {
  const Tokenizer& tokenizer = engine_->RequireTokenizer();
  const auto& tokens = engine_->special.fill;
  if (!tokens) {
    Throw(ErrorKind::kUnsupported,
          "this model cannot fill in the middle of a text: its vocabulary lacks the tokens for it, "
          "which models for code have");
  }
  return {.tokens = WithinLimits(
              [&](int64_t max_ids) { return EncodeFillIn(fill, *tokens, tokenizer, max_ids); }),
          .ends = tokens->ends};
}

std::unique_ptr<TextCache> Session::Impl::TakePrefix(const Request& request, int64_t most) {
  if (engine_->served.placement.all != nullptr)
    cache_ = request.plan().NewText();  // the others have no sessions
  if (!request.plan().SharesWith(*read_by_)) {
    joined_ = {};
    return request.plan().NewText();
  }
  const auto& tokens = request.sequence().tokens;
  const auto differ = std::mismatch(tokens.begin(), tokens.end(), text_.begin(), text_.end());
  const int64_t shared = cache_->RestartPoint(
      std::min({static_cast<int64_t>(differ.first - tokens.begin()), cache_->length(), most,
                request.plan().ReusableTokens(request.question_begin(), question_begin_)}),
      request.prompt_tokens());
  if (shared <= joined_.from) joined_.from = INT64_MAX;
  if (shared < joined_.end) joined_.passages.reset();
  if (shared == 0) return request.plan().NewText();
  cache_->Truncate(shared);
  return std::move(cache_);
}

void Session::Impl::Follow(std::shared_ptr<Request> request,
                           FunctionRef<void(const Event&)> on_event) {
  if (joined_.from != INT64_MAX) request->KeepToItself();
  engine_->scheduler->Submit(request);
  std::exception_ptr error;
  for (bool ended = false; !ended;) {
    try {
      const Event event = *request->Next(std::nullopt);
      ended = event.done;
      if (!error) on_event(event);
    } catch (...) {  // from the request, or from a callback
      if (!error) error = std::current_exception();
      request->Cancel();
      ended = request->done();
    }
  }
  cache_ = request->TakeCache();
  text_ = request->TakeTokens();
  read_by_ = request->shared_plan();
  question_begin_ = request->question_begin();
  if (request->may_be_saved()) ShareText(*request);
  if (error) std::rethrow_exception(error);
}

void Session::Impl::ShareText(const Request& request) {
  if (cache_->length() == 0) return;
  if (engine_->saved == nullptr && !request.goes_on_from_others()) return;
  const std::string& keep_as = request.options().keep_as;
  if (engine_->saved != nullptr) {
    engine_->saved->Save(request.shared_plan(), text_, *cache_, question_begin_, keep_as);
  }
  if (engine_->served.placement.all != nullptr) return;  // the others have no texts of sessions
  engine_->scheduler->Leave({.plan = request.shared_plan(),
                             .tokens = text_,
                             .cache = cache_->Fork(),
                             .question_begin = question_begin_,
                             .keep_as = keep_as});
}

void Session::Impl::ReadContext(std::span<const int32_t> context,
                                const std::function<void(const PromptProgress&)>& on_progress) {
  engine_->RequireRankZero();
  const std::lock_guard lock(mutex_);
  interrupt_->Reset();  // meant for an earlier call
  Read(context, on_progress);
}

void Session::Impl::Read(std::span<const int32_t> context,
                         const std::function<void(const PromptProgress&)>& on_progress,
                         bool shares) {
  const auto request =
      engine_->NewRequest(plan_, plan_->WithSink(context), {.max_tokens = 0, .query_tokens = 0},
                          interrupt_, RequestKind::kContext);
  if (shares && engine_->served.placement.all == nullptr) request->GoOnFromOthers();
  // A step needs a row, so the last token is always read again.
  request->ContinueFrom(TakePrefix(*request, std::ssize(request->sequence().tokens) - 1));
  Follow(request, [&](const Event& event) {
    if (event.progress && on_progress) on_progress(*event.progress);
  });
  if (request->TakeResult().finish_reason == FinishReason::kCancelled) {
    interrupt_->token().ThrowIfCancelled();
  }
}

bool Session::Impl::GoOnFrom(const Impl& other) {
  if (&other == this) return true;
  const std::scoped_lock lock(mutex_, other.mutex_);
  if (engine_ != other.engine_ || !plan_->ReadsAs(*other.plan_)) return false;
  // Tokens of the other's question saw what its policy shows a question.
  const bool is_all_alike =
      other.plan_->QuestionIndependentTokens(other.question_begin_) == INT64_MAX;
  const int64_t alike =
      std::min(std::ssize(other.text_), is_all_alike ? INT64_MAX : other.question_begin_);
  read_by_ = TextPlan::ReadBy(plan_, other.read_by_->options().prefill);
  cache_ = other.cache_->Fork(read_by_->NewText()->policy().Fork());
  text_.assign(other.text_.begin(), other.text_.begin() + alike);
  question_begin_ = plan_->QuestionBegin(alike, /*query_tokens=*/0);
  joined_ = other.joined_;
  return true;
}

void Session::Impl::ReuseTokens(const Impl& other, int64_t begin, int64_t end) {
  engine_->RequireRankZero();
  if (&other == this) {
    Throw(ErrorKind::kInput, "a session takes tokens from another one: fork it first");
  }
  const std::scoped_lock lock(mutex_, other.mutex_);
  if (engine_ != other.engine_ || !plan_->ReadsAs(*other.plan_)) {
    Throw(ErrorKind::kInput,
          "tokens are taken from a session of the same engine and the same options");
  }
  if (begin < 0 || begin > end || end > other.cache_->length()) {
    Throw(ErrorKind::kInput, "tokens [{}, {}) of a text of {} cached tokens cannot be taken", begin,
          end, other.cache_->length());
  }
  interrupt_->Reset();  // meant for an earlier call
  Reuse(other, begin, end);
}

void Session::Impl::Reuse(const Impl& other, int64_t begin, int64_t end) {
  RequireOneReading(plan_->options().prefill);
  // A last token that was drawn has not been read yet.
  text_.resize(cache_->length());
  engine_->Reuse(*interrupt_, *plan_, *other.cache_, begin, end - begin, *cache_);
  joined_.from = std::min(joined_.from, std::ssize(text_));
  const auto first = other.text_.begin() + begin;
  text_.insert(text_.end(), first, first + (end - begin));
  question_begin_ = plan_->QuestionBegin(std::ssize(text_), /*query_tokens=*/0);
}

PassagesRead Session::Impl::ReadPassages(
    std::span<const int32_t> head, std::span<const std::vector<int32_t>> passages,
    int64_t read_anew, const std::function<void(const PromptProgress&)>& on_progress) {
  engine_->RequireRankZero();
  if (head.empty() || read_anew < 0) {
    Throw(ErrorKind::kInput,
          "passages need a text before them, and a number of tokens to read anew of 0 or more");
  }
  const std::lock_guard lock(mutex_);
  interrupt_->Reset();  // meant for an earlier call
  PassagesRead read;
  std::vector<int32_t> all = plan_->WithSink(head);  // what is to be read
  const int64_t first = std::ssize(all);
  for (const auto& passage : passages) all.insert(all.end(), passage.begin(), passage.end());
  plan_->CheckPrompt(all);
  all.resize(first);
  RequirePassages(*plan_, /*joins=*/passages.size() > 1);
  joined_.passages.reset();

  PromptProgress progress{};  // of all
  progress.total_tokens = std::ssize(head);
  for (const auto& passage : passages) progress.total_tokens += std::ssize(passage);
  // Reads `text` with a session, and counts its tokens behind the first `known`.
  const auto read_with = [&](Impl& session, const std::vector<int32_t>& text, int64_t known) {
    const int64_t done = progress.done_tokens, cached = progress.cached_tokens;
    const auto tell = [&](const PromptProgress& p) {
      progress.done_tokens = done + std::max<int64_t>(0, p.done_tokens - known);
      progress.cached_tokens = cached + std::max<int64_t>(0, p.cached_tokens - known);
      if (on_progress) on_progress(progress);
    };
    session.Read(text, tell, /*shares=*/true);
    progress.done_tokens = done + std::ssize(text) - known;
  };
  read_with(*this, all, first - std::ssize(head));
  for (size_t i = 0; i < passages.size(); ++i) {
    const auto& passage = passages[i];
    if (passage.empty()) continue;
    const int64_t begin = std::ssize(all), tokens = std::ssize(passage);
    if (begin == first) {  // as it would be read anyway
      all.insert(all.end(), passage.begin(), passage.end());
      read_with(*this, all, first);
      continue;
    }
    const auto alone = ForkLocked();
    alone->interrupt_ = interrupt_;
    std::vector<int32_t> behind_head(all.begin(), all.begin() + first);
    behind_head.insert(behind_head.end(), passage.begin(), passage.end());
    read_with(*alone, behind_head, first);
    const int64_t anew = std::min(read_anew, tokens);
    all.insert(all.end(), passage.begin(), passage.begin() + anew);
    if (anew > 0) Read(all, {});
    Reuse(*alone, first + anew, first + tokens);
    all.insert(all.end(), passage.begin() + anew, passage.end());
    read.anew_tokens += anew;
    read.reused_tokens += tokens - anew;
  }
  read.cached_tokens = progress.cached_tokens;
  read.tokens = std::move(all);
  joined_.passages = read;
  joined_.end = std::ssize(read.tokens);
  return read;
}

int64_t Session::Impl::Save() {
  const std::lock_guard lock(mutex_);
  SavedTexts& saved = engine_->RequireSavedTexts();
  if (joined_.from != INT64_MAX) {
    Throw(ErrorKind::kUnsupported, "a text with tokens taken from another one is not saved");
  }
  saved.Save(read_by_, text_, *cache_, question_begin_, "");
  saved.Wait();
  const auto pieces = saved.folder().Longest(read_by_->facts(question_begin_), text_);
  return pieces.empty() ? 0 : pieces.back().end;
}

int64_t Session::Impl::Load(const std::string& name) {
  const std::lock_guard lock(mutex_);
  SavedTexts& saved = engine_->RequireSavedTexts();
  auto tokens = saved.folder().TokensOf(plan_->facts(/*question_begin=*/0), name);
  if (!tokens) {
    Throw(ErrorKind::kInput, "no saved text is pinned as {} for this model with these settings",
          Quote(name));
  }
  plan_->CheckPrompt(*tokens);
  // The question of a loaded text counts as if it began behind its end.
  const int64_t question_begin = plan_->QuestionBegin(std::ssize(*tokens), 0);
  auto cache = saved.RestoreAll(*plan_, *tokens, question_begin);
  if (cache == nullptr)
    Throw(ErrorKind::kFormat, "the saved text that is pinned as {} is damaged", Quote(name));
  cache_ = std::move(cache);
  read_by_ = plan_;
  text_ = std::move(*tokens);
  text_.resize(cache_->length());
  question_begin_ = question_begin;
  return cache_->length();
}

GenerateResult Session::Impl::Generate(std::span<const int32_t> prompt,
                                       const GenerateOptions& options) {
  engine_->RequireRankZero();
  const std::lock_guard lock(mutex_);
  interrupt_->Reset();  // meant for an earlier call
  const auto request = engine_->NewRequest(plan_, plan_->WithSink(prompt), options, interrupt_,
                                           RequestKind::kOfSession);
  // The last token is always read again, because its logits begin the output.
  request->ContinueFrom(TakePrefix(*request, std::ssize(request->sequence().tokens) - 1));
  Follow(request, [&](const Event& event) {
    if (event.progress && options.on_progress) options.on_progress(*event.progress);
    if (!event.text.empty() && options.on_text) options.on_text(event.text);
    if (options.on_event) options.on_event(event);
  });
  GenerateResult result = request->TakeResult();
  result.passages = joined_.passages;
  // The request may have ended before the reader gave up. A time limit interrupts it, too.
  if (interrupt_->cancelled() && result.finish_reason != FinishReason::kTimeout) {
    result.finish_reason = FinishReason::kCancelled;
  }
  return result;
}

void Session::Impl::FollowStates(
    std::span<const int32_t> tokens, int64_t first,
    FunctionRef<void(int64_t position, MatrixView<const float> states)> take,
    const std::function<void(const PromptProgress&)>& on_progress) {
  engine_->RequireRankZero();
  const std::lock_guard lock(mutex_);
  interrupt_->Reset();  // meant for an earlier call
  const std::vector<int32_t> text = plan_->WithSink(tokens);
  const int64_t added = std::ssize(text) - std::ssize(tokens);
  const auto request = engine_->NewRequest(
      plan_, text, {.max_tokens = 0, .query_tokens = std::ssize(tokens) - first}, interrupt_,
      RequestKind::kStates);
  request->ContinueFrom(TakePrefix(*request, first + added));

  const int64_t width = engine_->model->hidden_size();
  int64_t next = first + added;
  Follow(request, [&](const Event& event) {
    const auto states = request->TakeStates();
    if (!states) return;
    const int64_t n = std::ssize(states->values) / width;
    const MatrixView<const float> hidden{states->values.data(), n, width, width};
    const int64_t end = states->position + n;
    if (next < end) {
      take(next - added, hidden.Rows(next - states->position, n));
      next = end;
    }
    if (on_progress && event.progress) on_progress(*event.progress);
  });
  if (request->TakeResult().finish_reason == FinishReason::kCancelled) {
    interrupt_->token().ThrowIfCancelled();
  }
}

void Session::Impl::Logits(std::span<const int32_t> tokens,
                           const std::function<void(int64_t, std::span<const float>)>& row,
                           int64_t first,
                           const std::function<void(const PromptProgress&)>& on_progress) {
  // Logits come in blocks [kBlock, vocab], because those of a long text take gigabytes.
  constexpr int64_t kBlock = 64;
  const int64_t vocab = engine_->served.spec.vocab_size;
  std::vector<float> block;
  const auto take = [&](int64_t position, MatrixView<const float> states) {
    block.resize(std::max(std::ssize(block), std::min(states.rows, kBlock) * vocab));
    for (int64_t at = 0; at < states.rows; at += kBlock) {
      const int64_t rows = std::min(kBlock, states.rows - at);
      const MatrixView<float> logits{block.data(), rows, vocab, vocab};
      engine_->scheduler->RunAlone(*interrupt_, [&](const Exec& exec) {
        engine_->Logits(exec, states.Rows(at, at + rows), logits);
      });
      for (int64_t i = 0; i < rows; ++i) row(position + at + i, logits.RowSpan(i));
    }
  };
  FollowStates(tokens, first, take, on_progress);
}

void Session::Impl::HiddenStates(std::span<const int32_t> tokens,
                                 const std::function<void(int64_t, std::span<const float>)>& row,
                                 int64_t first,
                                 const std::function<void(const PromptProgress&)>& on_progress) {
  const auto take = [&](int64_t position, MatrixView<const float> states) {
    for (int64_t i = 0; i < states.rows; ++i) row(position + i, states.RowSpan(i));
  };
  FollowStates(tokens, first, take, on_progress);
}

std::unique_ptr<Session::Impl> Session::Impl::Fork() const {
  const std::lock_guard lock(mutex_);
  return ForkLocked();
}

std::unique_ptr<Session::Impl> Session::Impl::ForkLocked() const {
  auto fork = std::make_unique<Impl>(engine_, plan_);
  fork->text_ = text_;
  fork->cache_ = cache_->Fork();
  fork->read_by_ = read_by_;
  fork->question_begin_ = question_begin_;
  fork->joined_ = joined_;
  return fork;
}

std::span<const int32_t> Session::Impl::tokens() const {
  const std::lock_guard lock(mutex_);
  return text_;
}

KvReport Session::Impl::kv() const {
  const std::lock_guard lock(mutex_);
  return ReportOf(*cache_, question_begin_);
}

int64_t Session::Impl::limit_tokens() const {
  const int64_t most = plan_->limit_tokens();
  return most == INT64_MAX || !engine_->served.spec.sink_token ? most : most - 1;
}

namespace {

// Refuses a session that was moved from.
void RequireSession(const void* impl) {
  if (impl == nullptr) Throw(ErrorKind::kInput, "the session has been moved from and has no text");
}

}  // namespace

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

std::vector<int32_t> Session::Tokenize(std::string_view text, bool add_special) const {
  return impl_->Tokenize(text, add_special);
}

FillPrompt Session::PromptToFill(const FillIn& fill) const { return impl_->PromptToFill(fill); }

GenerateResult Session::Generate(std::span<const int32_t> prompt, const GenerateOptions& options) {
  return impl_->Generate(prompt, options);
}

namespace {

// Session::Impl refuses empty texts.
void CheckFirst(std::string_view rows, std::span<const int32_t> tokens, int64_t first) {
  if (first < 0 || (first > 0 && first >= std::ssize(tokens))) {
    Throw(ErrorKind::kInput, "{} from position {} on: expected one of the text's {} positions",
          rows, first, tokens.size());
  }
}

}  // namespace

void Session::Logits(
    std::span<const int32_t> tokens,
    const std::function<void(int64_t position, std::span<const float> logits)>& row, int64_t first,
    const std::function<void(const PromptProgress&)>& on_progress) {
  CheckFirst("logits", tokens, first);
  impl_->Logits(tokens, row, first, on_progress);
}

void Session::HiddenStates(
    std::span<const int32_t> tokens,
    const std::function<void(int64_t position, std::span<const float> state)>& row, int64_t first,
    const std::function<void(const PromptProgress&)>& on_progress) {
  CheckFirst("hidden states", tokens, first);
  impl_->HiddenStates(tokens, row, first, on_progress);
}

void Session::ReadContext(std::span<const int32_t> context,
                          const std::function<void(const PromptProgress&)>& on_progress) {
  impl_->ReadContext(context, on_progress);
}

bool Session::GoOnFrom(const Session& other) {
  RequireSession(other.impl_.get());
  return impl_->GoOnFrom(*other.impl_);
}

void Session::ReuseTokens(const Session& other, int64_t begin, int64_t end) {
  RequireSession(other.impl_.get());
  impl_->ReuseTokens(*other.impl_, begin, end);
}

PassagesRead Session::ReadPassages(std::span<const int32_t> head,
                                   std::span<const std::vector<int32_t>> passages,
                                   int64_t read_anew,
                                   const std::function<void(const PromptProgress&)>& on_progress) {
  return impl_->ReadPassages(head, passages, read_anew, on_progress);
}

int64_t Session::Save() { return impl_->Save(); }
int64_t Session::Load(const std::string& name) { return impl_->Load(name); }
void Session::Cancel() noexcept { impl_->Cancel(); }
Session Session::Fork() const {
  RequireSession(impl_.get());
  return Session(impl_->Fork());
}
std::span<const int32_t> Session::tokens() const { return impl_->tokens(); }
KvReport Session::kv() const { return impl_->kv(); }
int64_t Session::limit_tokens() const { return impl_->limit_tokens(); }
int64_t Session::learned_positions() const { return impl_->learned_positions(); }

}  // namespace godwit
