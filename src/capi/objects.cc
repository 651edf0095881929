#include "capi/objects.h"

#include <memory>
#include <utility>

#include "base/error.h"

namespace godwit::capi {
namespace {

struct OwnedText : godwit_text {
  std::string text;
};

struct OwnedTokens : godwit_tokens {
  std::vector<int32_t> own;
};

struct OwnedStrings : godwit_strings {
  std::vector<std::string> own;
  std::vector<const char*> pointers;
};

struct OwnedEvent : godwit_event {
  Event event;
  std::unique_ptr<EventView> view;
};

struct OwnedKvReport : godwit_kv_report {
  KvReport report;
  std::vector<godwit_kv_span> spans;
};

struct OwnedResult : godwit_result {
  GenerateResult result;
  std::vector<godwit_token_logprobs> tokens_logprobs;
  std::vector<godwit_token_logprob> top;
  std::unique_ptr<OwnedKvReport> report;
  std::vector<godwit_draft_source> sources;
  godwit_draft_report draft_report;
};

struct OwnedSavedTexts : godwit_saved_texts {
  std::vector<SavedText> own;
  std::vector<std::vector<const char*>> names;
  std::vector<godwit_saved_text> list;
};

struct OwnedFillPrompt : godwit_fill_prompt {
  FillPrompt prompt;
  std::vector<const char*> pointers;
};

// Makes the lists of C: those of `top` lie one behind another.
void ListLogprobs(const std::vector<TokenLogprobs>& logprobs,
                  std::vector<godwit_token_logprobs>& list,
                  std::vector<godwit_token_logprob>& top) {
  size_t count = 0;
  for (const TokenLogprobs& token : logprobs) count += token.top.size();
  top.reserve(count);
  list.reserve(logprobs.size());
  for (const TokenLogprobs& token : logprobs) {
    list.push_back({.top = top.data() + top.size(),
                    .top_count = static_cast<int32_t>(token.top.size()),
                    .logprob = token.logprob});
    for (const auto& [id, logprob] : token.top) top.push_back({.token = id, .logprob = logprob});
  }
}

std::unique_ptr<OwnedKvReport> OwnReport(KvReport report) {
  auto owned = std::make_unique<OwnedKvReport>();
  owned->report = std::move(report);
  const KvReport& own = owned->report;
  for (const auto& [begin, end] : own.dropped) owned->spans.push_back({begin, end});
  owned->struct_size = sizeof(godwit_kv_report);
  owned->policy = own.policy.c_str();
  owned->prefill = own.prefill.c_str();
  owned->seen = own.seen;
  owned->context_tokens = own.context_tokens;
  owned->kept = own.kept;
  owned->dropped = owned->spans.data();
  owned->dropped_count = std::ssize(owned->spans);
  owned->bytes = own.bytes;
  owned->in_file = own.file.has_value();
  owned->file_in_memory_bytes = own.file ? own.file->in_memory_bytes : 0;
  owned->file_read_bytes = own.file ? own.file->read_bytes : 0;
  return owned;
}

void ListDrafts(const DraftReport& drafts, OwnedResult& owned) {
  for (const DraftReport::Source& source : drafts.sources) {
    owned.sources.push_back({.name = source.name.c_str(),
                             .accepted = source.accepted,
                             .skipped_steps = source.skipped_steps});
  }
  owned.draft_report = {.struct_size = sizeof(godwit_draft_report),
                        .steps = drafts.steps,
                        .draft_tokens = drafts.draft_tokens,
                        .accepted = drafts.accepted,
                        .steps_short_of_memory = drafts.steps_short_of_memory,
                        .sources = owned.sources.data(),
                        .sources_count = std::ssize(owned.sources)};
  owned.drafts = &owned.draft_report;
}

static_assert(static_cast<int>(FinishReason::kStop) == GODWIT_FINISH_STOP);
static_assert(static_cast<int>(FinishReason::kLength) == GODWIT_FINISH_LENGTH);
static_assert(static_cast<int>(FinishReason::kContextFull) == GODWIT_FINISH_CONTEXT_FULL);
static_assert(static_cast<int>(FinishReason::kCancelled) == GODWIT_FINISH_CANCELLED);
static_assert(static_cast<int>(FinishReason::kTimeout) == GODWIT_FINISH_TIMEOUT);

}  // namespace

godwit_text* NewText(std::string text) {
  auto owned = std::make_unique<OwnedText>();
  owned->text = std::move(text);
  owned->struct_size = sizeof(godwit_text);
  owned->data = owned->text.c_str();
  owned->bytes = owned->text.size();
  return owned.release();
}

godwit_tokens* NewTokens(std::vector<int32_t> ids) {
  auto owned = std::make_unique<OwnedTokens>();
  owned->own = std::move(ids);
  owned->struct_size = sizeof(godwit_tokens);
  owned->ids = owned->own.data();
  owned->count = std::ssize(owned->own);
  return owned.release();
}

godwit_strings* NewStrings(std::vector<std::string> strings) {
  auto owned = std::make_unique<OwnedStrings>();
  owned->own = std::move(strings);
  owned->pointers = Pointers(owned->own);
  owned->struct_size = sizeof(godwit_strings);
  owned->strings = owned->pointers.data();
  owned->count = std::ssize(owned->pointers);
  return owned.release();
}

godwit_prompt_progress ProgressView(const PromptProgress& progress) {
  return {.struct_size = sizeof(godwit_prompt_progress),
          .done_tokens = progress.done_tokens,
          .total_tokens = progress.total_tokens,
          .cached_tokens = progress.cached_tokens,
          .elapsed_ms = progress.elapsed_ms,
          .left_ms = progress.left_ms.value_or(-1)};
}

EventView::EventView(const Event& event) {
  if (event.progress) progress_ = ProgressView(*event.progress);
  ListLogprobs(event.logprobs, logprobs_, top_);
  view_ = {.struct_size = sizeof(godwit_event),
           .progress = event.progress ? &progress_ : nullptr,
           .tokens = event.tokens.data(),
           .tokens_count = std::ssize(event.tokens),
           .logprobs = logprobs_.empty() ? nullptr : logprobs_.data(),
           .text = event.text.c_str(),
           .text_bytes = event.text.size(),
           .thought_tokens = event.thought_tokens,
           .done = event.done};
}

godwit_event* NewEvent(Event event) {
  auto owned = std::make_unique<OwnedEvent>();
  owned->event = std::move(event);
  owned->view = std::make_unique<EventView>(owned->event);
  static_cast<godwit_event&>(*owned) = *owned->view->get();
  return owned.release();
}

godwit_kv_report* NewKvReport(KvReport report) { return OwnReport(std::move(report)).release(); }

godwit_result* NewResult(GenerateResult result) {
  auto owned = std::make_unique<OwnedResult>();
  owned->result = std::move(result);
  const GenerateResult& own = owned->result;
  ListLogprobs(own.logprobs, owned->tokens_logprobs, owned->top);
  owned->report = OwnReport(own.kv);
  owned->struct_size = sizeof(godwit_result);
  owned->text = own.text.c_str();
  owned->text_bytes = own.text.size();
  owned->tokens = own.tokens.data();
  owned->tokens_count = std::ssize(own.tokens);
  owned->thought_tokens = own.thought_tokens;
  owned->prompt_tokens = own.prompt_tokens;
  owned->cached_tokens = own.cached_tokens;
  owned->disk_tokens = own.disk_tokens;
  owned->read_tokens = own.read_tokens;
  owned->finish_reason = static_cast<int32_t>(own.finish_reason);
  owned->stop = own.stop.c_str();
  owned->logprobs = own.logprobs.empty() ? nullptr : owned->tokens_logprobs.data();
  owned->pauses = own.pauses;
  owned->kv = owned->report.get();
  if (own.drafts) ListDrafts(*own.drafts, *owned);
  owned->prompt_ms = own.prompt_ms;
  owned->predicted_ms = own.predicted_ms;
  return owned.release();
}

godwit_saved_texts* NewSavedTexts(std::vector<SavedText> texts) {
  auto owned = std::make_unique<OwnedSavedTexts>();
  owned->own = std::move(texts);
  for (const SavedText& text : owned->own) owned->names.push_back(Pointers(text.names));
  for (size_t i = 0; i < owned->own.size(); ++i) {
    const SavedText& text = owned->own[i];
    owned->list.push_back({.id = text.id.c_str(),
                           .tokens = text.tokens,
                           .bytes = text.bytes,
                           .model = text.model.c_str(),
                           .names = owned->names[i].data(),
                           .names_count = std::ssize(owned->names[i])});
  }
  owned->struct_size = sizeof(godwit_saved_texts);
  owned->texts = owned->list.data();
  owned->count = std::ssize(owned->list);
  return owned.release();
}

godwit_fill_prompt* NewFillPrompt(FillPrompt prompt) {
  auto owned = std::make_unique<OwnedFillPrompt>();
  owned->prompt = std::move(prompt);
  owned->pointers = Pointers(owned->prompt.ends);
  owned->struct_size = sizeof(godwit_fill_prompt);
  owned->ids = owned->prompt.tokens.data();
  owned->count = std::ssize(owned->prompt.tokens);
  owned->ends = owned->pointers.data();
  owned->ends_count = std::ssize(owned->pointers);
  return owned.release();
}

std::vector<const char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return pointers;
}

std::string_view TextOf(const char* text, size_t bytes, const char* name) {
  if (text == nullptr && bytes > 0) {
    Throw(ErrorKind::kInput, "{}: expected a text of {} bytes, found NULL", name, bytes);
  }
  return text == nullptr ? std::string_view() : std::string_view(text, bytes);
}

std::string StringOf(const char* text) { return text == nullptr ? "" : text; }

template <typename T>
std::span<const T> SpanOf(const T* values, int64_t count, const char* name) {
  if (count < 0)
    Throw(ErrorKind::kInput, "{}: expected a count of 0 or more, found {}", name, count);
  if (values == nullptr && count > 0) {
    Throw(ErrorKind::kInput, "{}: expected an array of {}, found NULL", name, count);
  }
  return {values, static_cast<size_t>(count)};
}

template std::span<const int32_t> SpanOf(const int32_t*, int64_t, const char*);
template std::span<const godwit_logit_bias> SpanOf(const godwit_logit_bias*, int64_t, const char*);
template std::span<const godwit_fill_file> SpanOf(const godwit_fill_file*, int64_t, const char*);

std::vector<std::string> StringsOf(const char* const* strings, int64_t count, const char* name) {
  std::vector<std::string> list;
  for (const char* const text : SpanOf(strings, count, name)) {
    if (text == nullptr)
      Throw(ErrorKind::kInput, "{}: expected texts, found NULL among them", name);
    list.emplace_back(text);
  }
  return list;
}

std::vector<Message> MessagesOf(const godwit_message* messages, int64_t count) {
  if (count < 0 || (messages == nullptr && count > 0)) {
    Throw(ErrorKind::kInput, "messages: expected an array of {}, found NULL", count);
  }
  std::vector<Message> list;
  const auto* at = reinterpret_cast<const char*>(messages);
  const size_t stride = count > 0 ? messages->struct_size : 0;
  for (int64_t i = 0; i < count; ++i, at += stride) {
    const auto& message = *reinterpret_cast<const godwit_message*>(at);
    if (message.struct_size != stride || stride < sizeof(godwit_message)) {
      Throw(ErrorKind::kInput, "message {}: struct_size is {}, expected {} for all", i,
            message.struct_size, sizeof(godwit_message));
    }
    list.push_back({.role = StringOf(message.role),
                    .content = std::string(
                        TextOf(message.content, message.content_bytes, "a message's content")),
                    .fields = StringOf(message.fields)});
  }
  return list;
}

}  // namespace godwit::capi

void godwit_text_free(godwit_text* text) { delete static_cast<godwit::capi::OwnedText*>(text); }
void godwit_tokens_free(godwit_tokens* tokens) {
  delete static_cast<godwit::capi::OwnedTokens*>(tokens);
}
void godwit_strings_free(godwit_strings* strings) {
  delete static_cast<godwit::capi::OwnedStrings*>(strings);
}
void godwit_event_free(godwit_event* event) {
  delete static_cast<godwit::capi::OwnedEvent*>(event);
}
void godwit_kv_report_free(godwit_kv_report* report) {
  delete static_cast<godwit::capi::OwnedKvReport*>(report);
}
void godwit_result_free(godwit_result* result) {
  delete static_cast<godwit::capi::OwnedResult*>(result);
}
void godwit_saved_texts_free(godwit_saved_texts* texts) {
  delete static_cast<godwit::capi::OwnedSavedTexts*>(texts);
}
void godwit_fill_prompt_free(godwit_fill_prompt* prompt) {
  delete static_cast<godwit::capi::OwnedFillPrompt*>(prompt);
}
