// Answers that begin with their prompt: "echo" of a text completion.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "base/cancel.h"
#include "chat/answers.h"
#include "godwit/engine.h"

namespace godwit::chat {

// Stands for the log-probability of a first token, which follows nothing.
inline constexpr float kNoLogprob = std::numeric_limits<float>::quiet_NaN();

// The result with its prompt in front. `echo`: the prompt's text and tokens, and log-probabilities
// of the tokens if request.generate.top_logprobs is 0 or more.
GenerateResult WithEcho(const Event& echo, const GenerateResult& result);

// AnswerRequest for a request with echo. The first event of each answer is its prompt. With
// log-probabilities the prompts are read one after the other, and an answer comes as one event.
std::vector<GenerateResult> AnswerWithEcho(
    const Engine& engine, const SessionOptions& options, const CompletionRequest& request,
    std::span<const Prompt> prompts, const CancelToken* cancel,
    const std::function<void(int answer, const Event& event)>& on_event, std::vector<Event>* echoes,
    const BegunAnswers& begun = {});

}  // namespace godwit::chat
