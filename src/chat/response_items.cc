#include "chat/response_items.h"

#include <fmt/format.h>

#include <utility>

namespace godwit::chat {
namespace {

using Json = nlohmann::ordered_json;
using Kind = AnswerPiece::Kind;

Json OutputText(std::string_view text) {
  return {{"type", "output_text"}, {"text", text}, {"annotations", Json::array()}};
}

}  // namespace

// An item behind those that there are.
Json ResponseItems::NewItem(Kind kind, const std::string& function) const {
  const size_t index = output_.size();
  const std::string id = index == 0 ? name_.id : fmt::format("{}_{}", name_.id, index);
  if (kind == Kind::kThought) {
    return {{"type", "reasoning"},
            {"id", "rs_" + id},
            {"status", "in_progress"},
            {"summary", Json::array()},
            {"content", Json::array()}};
  }
  if (kind == Kind::kText) {
    return {{"type", "message"},
            {"id", "msg_" + id},
            {"status", "in_progress"},
            {"role", "assistant"},
            {"content", Json::array()}};
  }
  return {{"type", "function_call"},
          {"id", "fc_" + id},
          {"status", "in_progress"},
          {"call_id", "call_" + CallIdOf(name_, static_cast<int64_t>(index))},
          {"name", function},
          {"arguments", ""}};
}

// Adds the place of the last item.
Json ResponseItems::Placed(Json fields) const {
  Json all{{"item_id", output_.back()["id"]}, {"output_index", output_.size() - 1}};
  if (kind_ != Kind::kCall) all["content_index"] = 0;
  all.update(fields);
  return all;
}

void ResponseItems::Open(Kind kind, const std::string& name, std::vector<ResponseEvent>& events) {
  const size_t index = output_.size();
  kind_ = kind;
  is_open_ = true;
  text_.clear();
  output_.push_back(NewItem(kind, name));
  events.push_back(
      {"response.output_item.added", {{"output_index", index}, {"item", output_.back()}}});
  if (kind != Kind::kText) return;
  events.push_back({"response.content_part.added", Placed({{"part", OutputText("")}})});
}

void ResponseItems::Say(const std::string& text, std::vector<ResponseEvent>& events) {
  text_ += text;
  switch (kind_) {
    case Kind::kThought:
      events.push_back({"response.reasoning_text.delta", Placed({{"delta", text}})});
      break;
    case Kind::kText:
      events.push_back(
          {"response.output_text.delta", Placed({{"delta", text}, {"logprobs", Json::array()}})});
      break;
    default:
      events.push_back({"response.function_call_arguments.delta", Placed({{"delta", text}})});
  }
}

void ResponseItems::Close(std::string_view status, std::vector<ResponseEvent>& events) {
  if (!std::exchange(is_open_, false)) return;
  Json& item = output_.back();
  item["status"] = status;
  switch (kind_) {
    case Kind::kThought:
      item["content"] = Json::array({{{"type", "reasoning_text"}, {"text", text_}}});
      events.push_back({"response.reasoning_text.done", Placed({{"text", text_}})});
      break;
    case Kind::kText:
      item["content"] = Json::array({OutputText(text_)});
      events.push_back(
          {"response.output_text.done", Placed({{"text", text_}, {"logprobs", Json::array()}})});
      events.push_back({"response.content_part.done", Placed({{"part", OutputText(text_)}})});
      break;
    default:
      item["arguments"] = text_;
      events.push_back({"response.function_call_arguments.done",
                        Placed({{"name", item["name"]}, {"arguments", text_}})});
  }
  events.push_back(
      {"response.output_item.done", {{"output_index", output_.size() - 1}, {"item", item}}});
}

std::vector<ResponseEvent> ResponseItems::Take(const AnswerPieces& pieces) {
  std::vector<ResponseEvent> events;
  for (const auto& [kind, text] : pieces) {
    if (kind == Kind::kArguments) {
      Say(text, events);
      continue;
    }
    if (!is_open_ || kind != kind_ || kind == Kind::kCall) {
      Close("completed", events);
      Open(kind, text, events);
    }
    if (kind != Kind::kCall) Say(text, events);
  }
  return events;
}

std::vector<ResponseEvent> ResponseItems::End(std::string_view status) {
  std::vector<ResponseEvent> events;
  if (output_.empty()) Open(Kind::kText, "", events);
  Close(status, events);
  return events;
}

}  // namespace godwit::chat
