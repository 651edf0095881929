// Objects that the library hands out, and arguments of several types.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "godwit/engine.h"
#include "godwit/godwit.h"

namespace godwit::capi {

godwit_text* NewText(std::string text);
godwit_tokens* NewTokens(std::vector<int32_t> ids);
godwit_strings* NewStrings(std::vector<std::string> strings);
godwit_event* NewEvent(Event event);
godwit_kv_report* NewKvReport(KvReport report);
godwit_result* NewResult(GenerateResult result);
godwit_saved_texts* NewSavedTexts(std::vector<SavedText> texts);
godwit_fill_prompt* NewFillPrompt(FillPrompt prompt);

// An event for a callback, valid as long as `event`.
class EventView {
 public:
  explicit EventView(const Event& event);
  EventView(const EventView&) = delete;
  EventView& operator=(const EventView&) = delete;

  const godwit_event* get() const { return &view_; }

 private:
  godwit_event view_{};
  godwit_prompt_progress progress_{};
  std::vector<godwit_token_logprobs> logprobs_;
  std::vector<godwit_token_logprob> top_;
};

godwit_prompt_progress ProgressView(const PromptProgress& progress);

// The texts as pointers, valid as long as `texts`.
std::vector<const char*> Pointers(const std::vector<std::string>& texts);

// Arguments. Each throws Error(kInput) for NULL where that is no value, and for negative counts.
// name: the argument, for messages.
std::string_view TextOf(const char* text, size_t bytes, const char* name);
std::string StringOf(const char* text);  // NULL: empty
std::vector<std::string> StringsOf(const char* const* strings, int64_t count, const char* name);
template <typename T>
std::span<const T> SpanOf(const T* values, int64_t count, const char* name);
std::vector<Message> MessagesOf(const godwit_message* messages, int64_t count);

}  // namespace godwit::capi
