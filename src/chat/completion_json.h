// Answers in the shape of OpenAI's API: the response body of a chat or a text completion.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "chat/answer_form.h"
#include "chat/answer_pieces.h"
#include "chat/completion_request.h"
#include "chat/token_texts.h"
#include "godwit/engine.h"

namespace godwit::chat {

// The Unix time.
int64_t UnixSeconds();

struct CompletionName {
  std::string id;     // the request's
  std::string model;  // the model that answered
  int64_t created = UnixSeconds();
  // A text from which the ids of calls in a stream are made, so that the same answer has the same
  // ones. Empty: they are random.
  std::string calls = {};
};

// The body of a whole answer, written in `form`. results: one for each answer. echoes: with echo,
// one for each prompt. A chat's thoughts are the "reasoning_content" of its messages. "seed" is
// added to OpenAI's fields. A choice has "kv" if text was dropped or was read by a window, and
// "drafts" if there were draft tokens. It has "pauses" if its memory was given to other requests
// and its text read again.
nlohmann::ordered_json CompletionJson(const CompletionRequest& request,
                                      std::span<const GenerateResult> results,
                                      const AnswerForm& form, const CompletionName& name,
                                      TokenTexts& texts, std::span<const Event> echoes = {});

// Parts of the body, also for streamed answers (completion_chunks.h).
std::string IdOf(const CompletionRequest& request, const CompletionName& name);
// The message of a whole answer: {"role", "content"}, with "reasoning_content" and "tool_calls"
// where the answer has them.
nlohmann::ordered_json MessageOf(const CompletionRequest& request, const AnswerForm& form,
                                 std::string_view text);
// A new id of a call: 9 letters and digits, as templates expect.
std::string NewCallId();
// The id of a call of an answer, by its number.
std::string CallIdOf(const CompletionName& name, int64_t number);
// The finish reason, which is "tool_calls" where the model ended with calls.
std::string FinishReasonName(FinishReason reason, bool has_calls);
nlohmann::ordered_json ChoiceLogprobs(const CompletionRequest& request,
                                      const GenerateResult& result, TokenTexts& texts);
// Token counts of all results. samples: the number of results that share one prompt.
nlohmann::ordered_json UsageJson(std::span<const GenerateResult> results, int samples);
// Adds "kv", "drafts" and "pauses" where there is something to report.
void AddKv(nlohmann::ordered_json& choice, const GenerateResult& result);

}  // namespace godwit::chat
