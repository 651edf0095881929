#include "chat/completion_json.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <utility>

#include "base/checksum.h"
#include "chat/answer_reader.h"
#include "chat/echo.h"
#include "chat/result_json.h"

namespace godwit::chat {
namespace {

constexpr size_t kCallIdLetters = 9;

using Json = nlohmann::ordered_json;

Json Choice(const CompletionRequest& request, const GenerateResult& result, const AnswerForm& form,
            size_t index, TokenTexts& texts) {
  Json choice;
  choice["index"] = index;
  if (request.is_chat()) {
    choice["message"] = MessageOf(request, form, result.text);
  } else {
    choice["text"] = result.text;
  }
  choice["logprobs"] = ChoiceLogprobs(request, result, texts);
  choice["finish_reason"] = FinishReasonName(
      result.finish_reason, request.is_chat() && choice["message"].contains("tool_calls"));
  if (request.return_token_ids) choice["token_ids"] = result.tokens;
  AddKv(choice, result);
  return choice;
}

}  // namespace

std::string IdOf(const CompletionRequest& request, const CompletionName& name) {
  return (request.is_chat() ? "chatcmpl-" : "cmpl-") + name.id;
}

std::string NewCallId() {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device random;
  std::string id(kCallIdLetters, ' ');
  for (char& c : id) c = kLetters[random() % kLetters.size()];
  return id;
}

std::string CallIdOf(const CompletionName& name, int64_t number) {
  if (name.calls.empty()) return NewCallId();
  const std::string text = fmt::format("{} {}", name.calls, number);
  return ContentName({std::as_bytes(std::span(text))}).substr(0, kCallIdLetters);
}

std::string FinishReasonName(FinishReason reason, bool has_calls) {
  return has_calls && reason == FinishReason::kStop ? "tool_calls" : FinishReasonName(reason);
}

Json MessageOf(const CompletionRequest& request, const AnswerForm& form, std::string_view text) {
  const WholeAnswer answer = ReadAnswer(request, form, text);
  Json message{{"role", "assistant"}};
  if (!answer.thought.empty()) message["reasoning_content"] = answer.thought;
  message["content"] = answer.text;
  if (answer.calls.empty()) return message;
  if (answer.text.empty()) message["content"] = nullptr;
  Json& calls = message["tool_calls"] = Json::array();
  for (const auto& [name, arguments] : answer.calls) {
    calls.push_back({{"id", NewCallId()},
                     {"type", "function"},
                     {"function", {{"name", name}, {"arguments", arguments}}}});
  }
  return message;
}

int64_t UnixSeconds() {
  using std::chrono::system_clock;
  return std::chrono::duration_cast<std::chrono::seconds>(system_clock::now().time_since_epoch())
      .count();
}

Json ChoiceLogprobs(const CompletionRequest& request, const GenerateResult& result,
                    TokenTexts& texts) {
  if (request.generate.top_logprobs < 0) return nullptr;
  if (request.is_chat()) return {{"content", LogprobsJson(result, texts)}};
  return LogprobListsJson(result, texts);
}

void AddKv(Json& choice, const GenerateResult& result) {
  if (result.kv.kept < result.kv.seen || result.kv.context_tokens > 0) {
    choice["kv"] = KvJson(result.kv);
  }
  if (result.drafts) choice["drafts"] = DraftsJson(*result.drafts);
  if (result.pauses > 0) choice["pauses"] = result.pauses;
}

Json UsageJson(std::span<const GenerateResult> results, int samples) {
  int64_t prompt_tokens = 0, cached_tokens = 0, disk_tokens = 0;
  int64_t completion_tokens = 0, thought_tokens = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    const GenerateResult& result = results[i];
    completion_tokens += std::ssize(result.tokens);
    thought_tokens += result.thought_tokens;
    if (i % static_cast<size_t>(samples) != 0) continue;
    prompt_tokens += result.prompt_tokens;
    cached_tokens += result.cached_tokens;
    disk_tokens += result.disk_tokens;
  }
  Json cached{{"cached_tokens", cached_tokens}};
  if (disk_tokens > 0) cached["disk_tokens"] = disk_tokens;
  Json usage{{"prompt_tokens", prompt_tokens},
             {"completion_tokens", completion_tokens},
             {"total_tokens", prompt_tokens + completion_tokens},
             {"prompt_tokens_details", std::move(cached)},
             {"completion_tokens_details", {{"reasoning_tokens", thought_tokens}}}};
  if (!results.empty()) AddPassages(results.front(), usage);
  return usage;
}

Json CompletionJson(const CompletionRequest& request, std::span<const GenerateResult> results,
                    const AnswerForm& form, const CompletionName& name, TokenTexts& texts,
                    std::span<const Event> echoes) {
  Json json;
  json["id"] = IdOf(request, name);
  json["object"] = request.is_chat() ? "chat.completion" : "text_completion";
  json["created"] = name.created;
  json["model"] = name.model;
  json["choices"] = Json::array();
  for (const GenerateResult& result : results) {
    const size_t index = json["choices"].size();
    const size_t prompt = index / static_cast<size_t>(request.samples);
    json["choices"].push_back(
        echoes.empty() ? Choice(request, result, form, index, texts)
                       : Choice(request, WithEcho(echoes[prompt], result), form, index, texts));
  }
  json["usage"] = UsageJson(results, request.samples);
  json["usage"].update(request.more_usage);
  json["seed"] = request.generate.sampler.seed;
  return json;
}

}  // namespace godwit::chat
