#include "chat/response_json.h"

#include <algorithm>
#include <utility>

#include "chat/result_json.h"

namespace godwit::chat {
namespace {

using Json = nlohmann::ordered_json;

Json Response(const ResponseRequest& request, const CompletionName& name, std::string_view status,
              Json output) {
  const GenerateOptions& generate = request.completion.generate;
  const Json sampler = SamplerJson(generate.sampler);
  return {{"id", "resp_" + name.id},
          {"object", "response"},
          {"created_at", name.created},
          {"status", status},
          {"error", nullptr},
          {"incomplete_details", nullptr},
          {"instructions", nullptr},
          {"max_output_tokens", generate.max_tokens < 0 ? Json() : Json(generate.max_tokens)},
          {"model", name.model},
          {"output", std::move(output)},
          {"parallel_tool_calls", request.completion.parallel_tool_calls},
          {"previous_response_id", nullptr},
          {"store", false},
          {"temperature", sampler["temperature"]},
          {"text", {{"format", {{"type", "text"}}}}},
          {"tool_choice", request.tool_choice},
          {"tools", request.tools},
          {"top_p", sampler["top_p"]},
          {"truncation", "disabled"},
          {"usage", nullptr},
          {"metadata", request.metadata},
          {"seed", generate.sampler.seed}};
}

std::string_view StatusOf(const GenerateResult& result) {
  switch (result.finish_reason) {
    case FinishReason::kStop:
      return "completed";
    case FinishReason::kCancelled:
      return "cancelled";
    default:
      return "incomplete";
  }
}

}  // namespace

Json ResponseEvents::Finished(const GenerateResult& result) const {
  const std::string_view status = StatusOf(result);
  Json json = Response(request_, name_, status, items_.output());
  if (status == "incomplete") {
    const bool timeout = result.finish_reason == FinishReason::kTimeout;
    json["incomplete_details"] = {{"reason", timeout ? "timeout" : "max_output_tokens"}};
  }
  const auto output_tokens = std::ssize(result.tokens);
  json["usage"] = {{"input_tokens", result.prompt_tokens},
                   {"input_tokens_details", {{"cached_tokens", result.cached_tokens}}},
                   {"output_tokens", output_tokens},
                   {"output_tokens_details", {{"reasoning_tokens", result.thought_tokens}}},
                   {"total_tokens", result.prompt_tokens + output_tokens}};
  AddPassages(result, json["usage"]);
  json["usage"].update(request_.completion.more_usage);
  json["timings"] = TimingsJson(result);
  AddKv(json, result);
  return json;
}

ResponseEvents::ResponseEvents(const ResponseRequest& request, const CompletionName& name)
    : request_(request), name_(name), items_(name) {}

Json ResponseEvents::Whole(const GenerateResult& result) {
  items_.Take(reader_->Push(result.text));
  items_.Take(reader_->Finish());
  items_.End(StatusOf(result));
  return Finished(result);
}

Json ResponseEvents::Make(std::string_view type, Json fields) {
  Json event{{"type", type}, {"sequence_number", next_++}};
  event.update(fields);
  return event;
}

Json ResponseEvents::Empty(std::string_view status) const {
  return Response(request_, name_, status, Json::array());
}

Json ResponseEvents::ListOf(std::vector<ResponseEvent> events) {
  Json list = Json::array();
  for (auto& [type, fields] : events) list.push_back(Make(type, std::move(fields)));
  return list;
}

Json ResponseEvents::First() {
  return Json::array({Make("response.created", {{"response", Empty("in_progress")}}),
                      Make("response.in_progress", {{"response", Empty("in_progress")}})});
}

Json ResponseEvents::Of(const Event& event) {
  return ListOf(items_.Take(reader_->Push(event.text)));
}

Json ResponseEvents::Progress(const PromptProgress& progress) {
  // Progress has no number of its own, because it depends on time: numbers of other events do not.
  Json event = Make("godwit.prompt_progress", ProgressJson(progress));
  event["sequence_number"] = std::max<int64_t>(0, --next_ - 1);
  return Json::array({std::move(event)});
}

Json ResponseEvents::Last(const GenerateResult& result) {
  Json list = ListOf(items_.Take(reader_->Finish()));
  for (Json& event : ListOf(items_.End(StatusOf(result)))) list.push_back(std::move(event));
  const bool completed = result.finish_reason == FinishReason::kStop;
  list.push_back(Make(completed ? "response.completed" : "response.incomplete",
                      {{"response", Finished(result)}}));
  return list;
}

Json ResponseEvents::Failed(std::string_view message) {
  Json response = Empty("failed");
  response["error"] = {{"code", "server_error"}, {"message", message}};
  return Json::array({Make("response.failed", {{"response", std::move(response)}})});
}

}  // namespace godwit::chat
