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

// In place of the log-probability of a first token, which stands behind nothing.
inline constexpr float kNoLogprob = std::numeric_limits<float>::quiet_NaN();

// A result with its prompt in front, as it is told. `echo`: the prompt's text and tokens, and with
// request.generate.top_logprobs of 0 and more how likely each of them was.
GenerateResult WithEcho(const Event& echo, const GenerateResult& result);

// As AnswerRequest has it, of a request with echo. Of each answer the first event is its prompt.
// With log-probabilities the prompts are read one after the other, and an answer comes as one
// event.
std::vector<GenerateResult> AnswerWithEcho(
    const Engine& engine, const SessionOptions& options, const CompletionRequest& request,
    std::span<const Prompt> prompts, const CancelToken* cancel,
    const std::function<void(int answer, const Event& event)>& on_event,
    std::vector<Event>* echoes);

}  // namespace godwit::chat
