// Answers to prompts of passages that are read once for all prompts (Session::ReadPassages).
#pragma once

#include <functional>

#include "base/cancel.h"
#include "chat/answers.h"
#include "chat/completion_request.h"
#include "godwit/engine.h"

namespace godwit::chat {

// The prompt of a conversation with request.passages, cut at them (Prompt::passage_ends). The
// question is all behind the last one, up to kQuestionTokens. Throws as PromptOf and CutAtPassages
// do.
Prompt PromptWithPassages(const Engine& engine, const Session& session,
                          const CompletionRequest& request);

// Answers one such prompt, with `generate` and `session` as GenerateAnswers takes them. The time of
// generate.timeout_ms includes the reading. Events and errors are those of GenerateAnswers, and
// errors of Session::ReadPassages come before the first event. The result counts as cached those
// tokens that were taken from other texts.
GenerateResult AnswerWithPassages(
    const Engine& engine, const Prompt& prompt, int64_t read_anew, GenerateOptions generate,
    const SessionOptions& session, const CancelToken* cancel,
    const std::function<void(int answer, const Event& event)>& on_event, const BegunAnswers& begun);

}  // namespace godwit::chat
