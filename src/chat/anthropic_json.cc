#include "chat/anthropic_json.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "chat/result_json.h"

namespace godwit::chat {
namespace {

using Json = nlohmann::ordered_json;
using Kind = AnswerPiece::Kind;

// Writing the cache costs nothing extra, so "cache_creation_input_tokens" is 0.
Json Usage(int64_t prompt_tokens, int64_t cached_tokens, int64_t output_tokens) {
  return {{"input_tokens", prompt_tokens - cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", cached_tokens},
          {"output_tokens", output_tokens}};
}

Json UsageOf(const GenerateResult& result) {
  Json usage = Usage(result.prompt_tokens, result.cached_tokens, std::ssize(result.tokens));
  usage["output_tokens_details"] = {{"thinking_tokens", result.thought_tokens}};
  return usage;
}

Json NewMessage(const CompletionName& name, Json content) {
  return {{"id", "msg_" + name.id},        {"type", "message"},
          {"role", "assistant"},           {"model", name.model},
          {"content", std::move(content)}, {"stop_reason", nullptr},
          {"stop_sequence", nullptr}};
}

// index: of the block in its answer.
Json NewBlock(Kind kind, const CompletionName& answer, size_t index, const std::string& name) {
  if (kind == Kind::kThought) return {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}};
  if (kind == Kind::kText) return {{"type", "text"}, {"text", ""}};
  return {{"type", "tool_use"},
          {"id", "toolu_" + CallIdOf(answer, static_cast<int64_t>(index))},
          {"name", name},
          {"input", Json::object()}};
}

// The object of a call's arguments. Null: they were cut off.
Json ObjectOf(const std::string& arguments) {
  try {
    Json object = ParseOrderedJson(arguments, "arguments");
    if (object.is_object()) return object;
  } catch (const Error&) {
  }
  return nullptr;
}

}  // namespace

// The stop reason.
Json AnthropicEvents::Stop(const GenerateResult& result) const {
  const auto is_call = [](const Json& block) { return block["type"] == "tool_use"; };
  Json stop{{"stop_reason", FinishReasonName(result.finish_reason)}, {"stop_sequence", nullptr}};
  if (result.finish_reason == FinishReason::kLength) stop["stop_reason"] = "max_tokens";
  if (result.finish_reason == FinishReason::kContextFull) {
    stop["stop_reason"] = "model_context_window_exceeded";
  }
  if (result.finish_reason != FinishReason::kStop) return stop;
  stop["stop_reason"] = std::ranges::any_of(content_, is_call) ? "tool_use" : "end_turn";
  if (!result.stop.empty()) {
    stop["stop_reason"] = "stop_sequence";
    stop["stop_sequence"] = result.stop;
  }
  return stop;
}

void AnthropicEvents::AddMeasures(const GenerateResult& result, Json& json) const {
  json["usage"] = UsageOf(result);
  AddPassages(result, json["usage"]);
  json["usage"].update(request_.more_usage);
  json["seed"] = request_.generate.sampler.seed;
  json["timings"] = TimingsJson(result);
  AddKv(json, result);
}

void AnthropicEvents::Start(const PromptProgress& progress, Json& events) {
  if (std::exchange(started_, true)) return;
  Json message = NewMessage(name_, Json::array());
  message["usage"] = Usage(progress.total_tokens, progress.cached_tokens, 0);
  events.push_back({{"type", "message_start"}, {"message", std::move(message)}});
}

void AnthropicEvents::Open(Kind kind, const std::string& name, Json& events) {
  Close(events);
  kind_ = kind;
  is_open_ = true;
  text_.clear();
  events.push_back({{"type", "content_block_start"},
                    {"index", content_.size()},
                    {"content_block", NewBlock(kind, name_, content_.size(), name)}});
  content_.push_back(events.back()["content_block"]);
}

void AnthropicEvents::Say(const std::string& text, Json& events) {
  text_ += text;
  Json delta{{"type", "input_json_delta"}, {"partial_json", text}};
  if (kind_ == Kind::kThought) delta = {{"type", "thinking_delta"}, {"thinking", text}};
  if (kind_ == Kind::kText) delta = {{"type", "text_delta"}, {"text", text}};
  events.push_back({{"type", "content_block_delta"},
                    {"index", content_.size() - 1},
                    {"delta", std::move(delta)}});
}

void AnthropicEvents::Close(Json& events) {
  if (!std::exchange(is_open_, false)) return;
  Json& block = content_.back();
  if (kind_ == Kind::kThought) {
    block["thinking"] = text_;
  } else if (kind_ == Kind::kText) {
    block["text"] = text_;
  } else if (Json input = ObjectOf(text_); !input.is_null()) {
    block["input"] = std::move(input);
  } else if (!text_.empty()) {
    block["partial_json"] = text_;
  }
  events.push_back({{"type", "content_block_stop"}, {"index", content_.size() - 1}});
}

void AnthropicEvents::Take(const AnswerPieces& pieces, Json& events) {
  for (const auto& [kind, text] : pieces) {
    if (kind == Kind::kArguments) {
      Say(text, events);
      continue;
    }
    if (!is_open_ || kind != kind_ || kind == Kind::kCall) Open(kind, text, events);
    if (kind != Kind::kCall) Say(text, events);
  }
}

Json AnthropicEvents::Whole(const GenerateResult& result) {
  Json events = Json::array();
  Take(reader_->Push(result.text), events);
  Take(reader_->Finish(), events);
  Close(events);
  Json message = NewMessage(name_, content_);
  message.update(Stop(result));
  AddMeasures(result, message);
  return message;
}

Json AnthropicEvents::Of(const Event& event) {
  Json events = Json::array();
  Start(event.progress.value_or(PromptProgress{}), events);
  Take(reader_->Push(event.text), events);
  return events;
}

Json AnthropicEvents::Progress(const PromptProgress& progress) {
  Json events = Json::array();
  Start(progress, events);
  Json event{{"type", "godwit.prompt_progress"}};
  event.update(ProgressJson(progress));
  events.push_back(std::move(event));
  return events;
}

Json AnthropicEvents::Last(const GenerateResult& result) {
  Json events = Json::array();
  Take(reader_->Finish(), events);
  Close(events);
  Json last{{"type", "message_delta"}, {"delta", Stop(result)}};
  AddMeasures(result, last);
  events.push_back(std::move(last));
  events.push_back({{"type", "message_stop"}});
  return events;
}

}  // namespace godwit::chat
