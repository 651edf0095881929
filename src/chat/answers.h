// Answers to a request, through the public API.
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

// The tokens to continue, and how many of the last ones are the question.
struct Prompt {
  std::vector<int32_t> tokens;
  int64_t query_tokens = GenerateOptions().query_tokens;
  AnswerForm form = {};                // for a conversation
  std::vector<std::string> ends = {};  // for a text with a hole: tokens that end the answer
  // For a conversation with passages: the ends of the part before the first and of each, in tokens.
  std::vector<int64_t> passage_ends = {};
};

// The most tokens of a last message that count as the question. A longer message also holds the
// text that is asked about.
inline constexpr int64_t kQuestionTokens = 512;
// The prompt of a conversation, up to where the answer begins. The question is the last message
// with its template text, up to kQuestionTokens. template_variables, tools: as in
// Engine::ApplyChatTemplate. continues: the last message is the beginning of the answer. Throws
// what RenderOpen and Session::Tokenize throw.
Prompt PromptOf(const Engine& engine, const Session& session, std::span<const Message> messages,
                std::string_view template_variables, std::string_view tools = "[]",
                bool continues = false);
// The tokens of the last of a text's lines, up to kQuestionTokens: the question of a text that
// nothing else is known about. The last token, if there is a single line.
int64_t LastLineTokens(const Session& session, std::string_view text);
// The prompts of a request. A positive generate.query_tokens of the request takes precedence.
// session: has the options with which the request is to be answered. Throws as PromptOf does.
std::vector<Prompt> PromptsOf(const Engine& engine, const Session& session,
                              const CompletionRequest& request);

// The beginning of an answer that an earlier process has written.
struct BegunAnswer {
  std::vector<int32_t> tokens;  // GenerateOptions::begun
  bool ended = false;           // nothing follows
};
using BegunAnswers = std::function<BegunAnswer(int answer)>;

// Generates `count` answers to each prompt, all at once, with options.sequence 0 to count - 1.
// Answers to one prompt stand together and read it once. The prompts' query_tokens replace
// options.query_tokens. on_event: called from this thread with every event of an answer. After
// Cancel of the token, which may be null, all answers end within a moment. Throws what
// Engine::Submit throws, and the first error of an answer. begun: the beginnings of the answers.
std::vector<GenerateResult> GenerateAnswers(
    const Engine& engine, std::span<const Prompt> prompts, GenerateOptions options,
    const SessionOptions& session, int count, const CancelToken* cancel,
    const std::function<void(int answer, const Event& event)>& on_event = {},
    const BegunAnswers& begun = {});
// GenerateAnswers for one prompt, with options.query_tokens.
std::vector<GenerateResult> GenerateAnswers(
    const Engine& engine, std::span<const int32_t> prompt, GenerateOptions options,
    const SessionOptions& session, int count, const CancelToken* cancel,
    const std::function<void(int answer, const Event& event)>& on_event = {},
    const BegunAnswers& begun = {});

// The answers to a request, by GenerateAnswers, with the request's own kv and prefill where it
// names them. session: as in PromptsOf, with `options`. on_form: called before the first event.
// With request.echo the first event of each answer is its prompt; echoes: receives these events.
// on_prompts: called before anything is generated, and may change the prompts. With
// request.passages, these are read by Session::ReadPassages (AnswerWithPassages).
std::vector<GenerateResult> AnswerRequest(
    const Engine& engine, const Session& session, const SessionOptions& options,
    const CompletionRequest& request, const CancelToken* cancel,
    const std::function<void(int answer, const Event& event)>& on_event = {},
    const std::function<void(const AnswerForm& form)>& on_form = {},
    std::vector<Event>* echoes = nullptr,
    const std::function<void(std::vector<Prompt>& prompts)>& on_prompts = {},
    const BegunAnswers& begun = {});

}  // namespace godwit::chat
