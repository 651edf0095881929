// Answers in the shape of OpenAI's API: the body that a chat or a text completion is answered with.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "chat/answer_form.h"
#include "chat/answer_pieces.h"
#include "chat/completion_request.h"
#include "chat/token_texts.h"
#include "godwit/engine.h"

namespace godwit::chat {

struct CompletionName {
  std::string id;     // of the request
  std::string model;  // that has answered
};

// results: one for each of the request's answers, written in `form`; echoes: one for each of its
// prompts, with echo. A chat's thoughts are the "reasoning_content" of its messages. Beside what
// OpenAI has: "seed", and in a choice
// "kv" where something was dropped of its text or read by a window, "pauses" where its memory was
// given to others and its text read again, "drafts" where there were any.
nlohmann::ordered_json CompletionJson(const CompletionRequest& request,
                                      std::span<const GenerateResult> results,
                                      const AnswerForm& form, const CompletionName& name,
                                      TokenTexts& texts, std::span<const Event> echoes = {});

// Parts of it, for answers that are streamed (completion_chunks.h).
std::string IdOf(const CompletionRequest& request, const CompletionName& name);
int64_t UnixSeconds();
// Of a call: 9 letters and digits, as templates ask for.
std::string NewCallId();
// "tool_calls" where the model ended with some.
std::string FinishReasonName(FinishReason reason, bool has_calls);
nlohmann::ordered_json ChoiceLogprobs(const CompletionRequest& request,
                                      const GenerateResult& result, TokenTexts& texts);
// samples: so many of the results are of one prompt.
nlohmann::ordered_json UsageJson(std::span<const GenerateResult> results, int samples);
// "kv", "drafts" and "pauses", where there is something to tell.
void AddKv(nlohmann::ordered_json& choice, const GenerateResult& result);

}  // namespace godwit::chat
