// From a request to its answers, through the public API.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "chat/answer_form.h"
#include "chat/completion_request.h"
#include "godwit/engine.h"

namespace godwit::chat {

// What is to be continued, and how many of its last tokens are the question.
struct Prompt {
  std::vector<int32_t> tokens;
  int64_t query_tokens = GenerateOptions().query_tokens;
  AnswerForm form = {};                // of a conversation
  std::vector<std::string> ends = {};  // tokens that end the answer, of a text with a hole
};

// Of a last message, at most: a long one holds what is asked about, too.
inline constexpr int64_t kQuestionTokens = 512;
// A conversation up to where its answer begins; its question is the last message and what frames
// it, up to kQuestionTokens. template_variables, tools: of Engine::ApplyChatTemplate. continues: it
// ends with the beginning of the answer. Throws what RenderOpen and Session::Tokenize throw.
Prompt PromptOf(const Engine& engine, const Session& session, std::span<const Message> messages,
                std::string_view template_variables, std::string_view tools = "[]",
                bool continues = false);
// Those of a request; its own generate.query_tokens come first, where they are not 0. session: of
// the options with which it is to be answered. Throws likewise.
std::vector<Prompt> PromptsOf(const Engine& engine, const Session& session,
                              const CompletionRequest& request);

// `count` answers to each prompt, all at once, options.sequence 0 to count - 1, which read it once;
// those to one stand together. options.query_tokens are the prompts' own. on_event: called from
// this thread with whatever comes of one of them. After Cancel of the token, which may be null, all
// end within a moment. Throws what Engine::Submit throws, and the first error of one.
std::vector<GenerateResult> GenerateAnswers(
    const Engine& engine, std::span<const Prompt> prompts, GenerateOptions options,
    const SessionOptions& session, int count, const CancelToken* cancel,
    const std::function<void(int answer, const Event& event)>& on_event = {});
// Likewise, to one with options.query_tokens.
std::vector<GenerateResult> GenerateAnswers(
    const Engine& engine, std::span<const int32_t> prompt, GenerateOptions options,
    const SessionOptions& session, int count, const CancelToken* cancel,
    const std::function<void(int answer, const Event& event)>& on_event = {});

// The answers that a request asks for, likewise, with its own kv and prefill where it names them.
// session: as PromptsOf has it, of `options`. on_form: called before the first event. With
// request.echo the first event of each answer is its prompt; echoes: those of the prompts.
std::vector<GenerateResult> AnswerRequest(
    const Engine& engine, const Session& session, const SessionOptions& options,
    const CompletionRequest& request, const CancelToken* cancel,
    const std::function<void(int answer, const Event& event)>& on_event = {},
    const std::function<void(const AnswerForm& form)>& on_form = {},
    std::vector<Event>* echoes = nullptr);

}  // namespace godwit::chat
