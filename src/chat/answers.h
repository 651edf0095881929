// From a request to its answers, through the public API.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "chat/completion_request.h"
#include "godwit/engine.h"

namespace godwit::chat {

// The tokens of a conversation, up to where its answer begins. template_variables: of
// Engine::ApplyChatTemplate. Throws what that and Session::Tokenize throw.
std::vector<int32_t> ChatTokens(const Engine& engine, const Session& session,
                                std::span<const Message> messages,
                                std::string_view template_variables);

// Of a last message, at most: a long one holds what is asked about, too.
inline constexpr int64_t kQuestionTokens = 512;
// Tokens at the end of those: the last message and what frames it, up to kQuestionTokens. Throws
// likewise.
int64_t QuestionTokens(const Engine& engine, const Session& session,
                       std::span<const Message> messages, std::string_view template_variables);

// The tokens of its prompt. session: of the options with which it is to be answered. Throws
// likewise.
std::vector<int32_t> PromptTokens(const Engine& engine, const Session& session,
                                  const CompletionRequest& request);
// GenerateOptions::query_tokens of a request that says nothing of it (0): QuestionTokens of a chat.
int64_t QueryTokens(const Engine& engine, const Session& session, const CompletionRequest& request);

// `count` answers to one prompt at once, options.sequence 0 to count - 1, which read it once.
// on_event: called from this thread with whatever comes of one of them. After Cancel of the token,
// which may be null, all end within a moment. Throws what Engine::Submit throws, and the first
// error of one.
std::vector<GenerateResult> GenerateAnswers(
    const Engine& engine, std::span<const int32_t> prompt, GenerateOptions options,
    const SessionOptions& session, int count, const CancelToken* cancel,
    const std::function<void(int answer, const Event& event)>& on_event = {});

}  // namespace godwit::chat
