#include "chat/completion_chunks.h"

#include <utility>

#include "chat/result_json.h"

namespace godwit::chat {

using Json = nlohmann::ordered_json;

CompletionChunks::CompletionChunks(const CompletionRequest& request, const CompletionName& name,
                                   TokenTexts& texts)
    : request_(request), name_(name), texts_(texts) {}

void CompletionChunks::Begin(const AnswerForm& form) {
  if (!request_.is_chat()) return;
  for (int i = 0; i < request_.samples; ++i) {
    readers_.push_back({.answer = AnswerReader(request_, form)});
  }
}

Json CompletionChunks::Chunk(Json choices) const {
  return {{"id", IdOf(request_, name_)},
          {"object", request_.is_chat() ? "chat.completion.chunk" : "text_completion"},
          {"created", name_.created},
          {"model", name_.model},
          {"choices", std::move(choices)}};
}

// delta: part of a chat's message, or a completion's text.
Json CompletionChunks::Choice(int choice, Json delta) const {
  return {{"index", choice},
          {request_.is_chat() ? "delta" : "text", std::move(delta)},
          {"logprobs", nullptr},
          {"finish_reason", nullptr}};
}

Json CompletionChunks::First(int choice) const {
  if (!request_.is_chat()) return nullptr;
  return Chunk(Json::array({Choice(choice, {{"role", "assistant"}, {"content", ""}})}));
}

// The new parts of a chat's message. Empty: nothing is new.
Json CompletionChunks::Delta(size_t choice, const AnswerPieces& pieces) {
  Json delta = Json::object();
  const auto add = [&](const char* field, const std::string& text) {
    Json& all = delta[field];
    all = all.is_null() ? text : all.get_ref<const std::string&>() + text;
  };
  Json calls = Json::array();
  size_t& count = readers_[choice].calls;
  for (const auto& [kind, text] : pieces) {
    switch (kind) {
      case AnswerPiece::Kind::kThought:
        add("reasoning_content", text);
        break;
      case AnswerPiece::Kind::kText:
        add("content", text);
        break;
      case AnswerPiece::Kind::kCall:
        calls.push_back(
            {{"index", count},
             {"id", CallIdOf(name_, static_cast<int64_t>((uint64_t{choice} << 32) + count))},
             {"type", "function"},
             {"function", {{"name", text}, {"arguments", ""}}}});
        ++count;
        break;
      case AnswerPiece::Kind::kArguments:
        if (calls.empty()) {
          calls.push_back({{"index", count - 1}, {"function", {{"arguments", ""}}}});
        }
        Json& arguments = calls.back()["function"]["arguments"];
        arguments = arguments.get_ref<const std::string&>() + text;
        break;
    }
  }
  if (!calls.empty()) delta["tool_calls"] = std::move(calls);
  return delta;
}

Json CompletionChunks::Of(int choice, const Event& event) {
  const auto at = static_cast<size_t>(choice);
  Json said = event.text;
  if (request_.is_chat()) said = Delta(at, readers_[at].answer.Push(event.text));
  const bool has_logprobs = request_.generate.top_logprobs >= 0 && !event.tokens.empty();
  if ((said.empty() || said == "") && !has_logprobs &&
      !(request_.return_token_ids && !event.tokens.empty())) {
    return nullptr;
  }
  Json json = Choice(choice, std::move(said));
  if (has_logprobs) {
    const GenerateResult part{.tokens = event.tokens, .logprobs = event.logprobs};
    json["logprobs"] = ChoiceLogprobs(request_, part, texts_);
  }
  if (request_.return_token_ids) json["token_ids"] = event.tokens;
  return Chunk(Json::array({std::move(json)}));
}

Json CompletionChunks::Progress(const PromptProgress& progress) const {
  Json json = Chunk(Json::array());
  json["prompt_progress"] = ProgressJson(progress);
  return json;
}

Json CompletionChunks::Last(int choice, const GenerateResult& result) {
  const auto at = static_cast<size_t>(choice);
  Json said = "";
  if (request_.is_chat()) said = Delta(at, readers_[at].answer.Finish());
  Json json = Choice(choice, std::move(said));
  json["finish_reason"] =
      FinishReasonName(result.finish_reason, request_.is_chat() && readers_[at].calls > 0);
  AddKv(json, result);
  Json chunk = Chunk(Json::array({std::move(json)}));
  chunk["timings"] = TimingsJson(result);
  return chunk;
}

Json CompletionChunks::Usage(std::span<const GenerateResult> results) const {
  Json json = Chunk(Json::array());
  json["usage"] = UsageJson(results, request_.samples);
  json["usage"].update(request_.more_usage);
  return json;
}

}  // namespace godwit::chat
