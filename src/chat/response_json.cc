#include "chat/response_json.h"

#include <utility>

#include "chat/result_json.h"

namespace godwit::chat {
namespace {

using Json = nlohmann::ordered_json;

Json Part(std::string_view text) {
  return {{"type", "output_text"}, {"text", text}, {"annotations", Json::array()}};
}

// The message that an answer is.
Json Item(const CompletionName& name, std::string_view status, Json parts) {
  return {{"type", "message"},
          {"id", "msg_" + name.id},
          {"status", status},
          {"role", "assistant"},
          {"content", std::move(parts)}};
}

Json Response(const ResponseRequest& request, const CompletionName& name, int64_t created,
              std::string_view status, Json output) {
  const GenerateOptions& generate = request.completion.generate;
  const Json sampler = SamplerJson(generate.sampler);
  return {{"id", "resp_" + name.id},
          {"object", "response"},
          {"created_at", created},
          {"status", status},
          {"error", nullptr},
          {"incomplete_details", nullptr},
          {"instructions", nullptr},
          {"max_output_tokens", generate.max_tokens < 0 ? Json() : Json(generate.max_tokens)},
          {"model", name.model},
          {"output", std::move(output)},
          {"parallel_tool_calls", true},
          {"previous_response_id", nullptr},
          {"store", false},
          {"temperature", sampler["temperature"]},
          {"text", {{"format", {{"type", "text"}}}}},
          {"tool_choice", "auto"},
          {"tools", Json::array()},
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

Json Finished(const ResponseRequest& request, const CompletionName& name, int64_t created,
              const GenerateResult& result) {
  const std::string_view status = StatusOf(result);
  Json json = Response(request, name, created, status,
                       Json::array({Item(name, status, Json::array({Part(result.text)}))}));
  if (status == "incomplete") {
    const bool timeout = result.finish_reason == FinishReason::kTimeout;
    json["incomplete_details"] = {{"reason", timeout ? "timeout" : "max_output_tokens"}};
  }
  const auto output_tokens = std::ssize(result.tokens);
  json["usage"] = {{"input_tokens", result.prompt_tokens},
                   {"input_tokens_details", {{"cached_tokens", result.cached_tokens}}},
                   {"output_tokens", output_tokens},
                   {"output_tokens_details", {{"reasoning_tokens", 0}}},
                   {"total_tokens", result.prompt_tokens + output_tokens}};
  json["timings"] = TimingsJson(result);
  AddKv(json, result);
  return json;
}

}  // namespace

Json ResponseJson(const ResponseRequest& request, const GenerateResult& result,
                  const CompletionName& name) {
  return Finished(request, name, UnixSeconds(), result);
}

ResponseEvents::ResponseEvents(const ResponseRequest& request, const CompletionName& name)
    : request_(request), name_(name), created_(UnixSeconds()) {}

Json ResponseEvents::Make(std::string_view type, Json fields) {
  Json event{{"type", type}, {"sequence_number", next_++}};
  event.update(fields);
  return event;
}

Json ResponseEvents::Empty(std::string_view status) const {
  return Response(request_, name_, created_, status, Json::array());
}

Json ResponseEvents::MakeOfPart(std::string_view type, const Json& fields) {
  Json all{{"item_id", "msg_" + name_.id}, {"output_index", 0}, {"content_index", 0}};
  all.update(fields);
  return Make(type, std::move(all));
}

Json ResponseEvents::First() {
  return Json::array(
      {Make("response.created", {{"response", Empty("in_progress")}}),
       Make("response.in_progress", {{"response", Empty("in_progress")}}),
       Make("response.output_item.added",
            {{"output_index", 0}, {"item", Item(name_, "in_progress", Json::array())}}),
       MakeOfPart("response.content_part.added", {{"part", Part("")}})});
}

Json ResponseEvents::Of(const Event& event) {
  if (event.text.empty()) return Json::array();
  return Json::array({MakeOfPart("response.output_text.delta",
                                 {{"delta", event.text}, {"logprobs", Json::array()}})});
}

Json ResponseEvents::Progress(const PromptProgress& progress) {
  return Json::array({Make("godwit.prompt_progress", ProgressJson(progress))});
}

Json ResponseEvents::Last(const GenerateResult& result) {
  const Json response = Finished(request_, name_, created_, result);
  const bool completed = response["status"] == "completed";
  return Json::array(
      {MakeOfPart("response.output_text.done",
                  {{"text", result.text}, {"logprobs", Json::array()}}),
       MakeOfPart("response.content_part.done", {{"part", Part(result.text)}}),
       Make("response.output_item.done", {{"output_index", 0}, {"item", response["output"][0]}}),
       Make(completed ? "response.completed" : "response.incomplete", {{"response", response}})});
}

Json ResponseEvents::Failed(std::string_view message) {
  Json response = Empty("failed");
  response["error"] = {{"code", "server_error"}, {"message", message}};
  return Json::array({Make("response.failed", {{"response", std::move(response)}})});
}

}  // namespace godwit::chat
