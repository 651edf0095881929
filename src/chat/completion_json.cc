#include "chat/completion_json.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <random>
#include <utility>

#include "chat/echo.h"
#include "chat/result_json.h"

namespace godwit::chat {
namespace {

using Json = nlohmann::ordered_json;

// Of a chat, with the calls that stand in the text.
Json MessageOf(const CompletionRequest& request, const GenerateResult& result) {
  ToolCallReader reader(request.tools.Names());
  SaidWithCalls said = reader.Push(result.text);
  SaidWithCalls rest = reader.Finish();
  said.text += rest.text;
  std::ranges::move(rest.calls, std::back_inserter(said.calls));
  Json message{{"role", "assistant"}, {"content", said.text}};
  if (said.calls.empty()) return message;
  if (said.text.empty()) message["content"] = nullptr;
  message["tool_calls"] = ToolCallsJson(said.calls, 0, /*streamed=*/false);
  return message;
}

Json Choice(const CompletionRequest& request, const GenerateResult& result, size_t index,
            TokenTexts& texts) {
  Json choice;
  choice["index"] = index;
  if (request.is_chat()) {
    choice["message"] = MessageOf(request, result);
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

Json ToolCallsJson(std::span<const ToolCall> calls, size_t first, bool streamed) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device random;
  Json list = Json::array();
  for (const ToolCall& call : calls) {
    std::string id(9, ' ');
    for (char& c : id) c = kLetters[random() % kLetters.size()];
    Json json = Json::object();
    if (streamed) json["index"] = first + list.size();
    json["id"] = id;
    json["type"] = "function";
    json["function"] = {{"name", call.name}, {"arguments", call.arguments}};
    list.push_back(std::move(json));
  }
  return list;
}

std::string FinishReasonName(FinishReason reason, bool has_calls) {
  return has_calls && reason == FinishReason::kStop ? "tool_calls" : FinishReasonName(reason);
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
  int64_t prompt_tokens = 0, cached_tokens = 0, disk_tokens = 0, completion_tokens = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    const GenerateResult& result = results[i];
    completion_tokens += std::ssize(result.tokens);
    if (i % static_cast<size_t>(samples) != 0) continue;
    prompt_tokens += result.prompt_tokens;
    cached_tokens += result.cached_tokens;
    disk_tokens += result.disk_tokens;
  }
  Json cached{{"cached_tokens", cached_tokens}};
  if (disk_tokens > 0) cached["disk_tokens"] = disk_tokens;
  return {{"prompt_tokens", prompt_tokens},
          {"completion_tokens", completion_tokens},
          {"total_tokens", prompt_tokens + completion_tokens},
          {"prompt_tokens_details", std::move(cached)}};
}

Json CompletionJson(const CompletionRequest& request, std::span<const GenerateResult> results,
                    const CompletionName& name, TokenTexts& texts, std::span<const Event> echoes) {
  Json json;
  json["id"] = IdOf(request, name);
  json["object"] = request.is_chat() ? "chat.completion" : "text_completion";
  json["created"] = UnixSeconds();
  json["model"] = name.model;
  json["choices"] = Json::array();
  for (const GenerateResult& result : results) {
    const size_t index = json["choices"].size();
    const size_t prompt = index / static_cast<size_t>(request.samples);
    json["choices"].push_back(
        echoes.empty() ? Choice(request, result, index, texts)
                       : Choice(request, WithEcho(echoes[prompt], result), index, texts));
  }
  json["usage"] = UsageJson(results, request.samples);
  json["seed"] = request.generate.sampler.seed;
  return json;
}

}  // namespace godwit::chat
