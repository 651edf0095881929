#include "text/chat_template.h"

#include <chrono>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "text/text_worker.h"

namespace godwit {
namespace {

using nlohmann::ordered_json;

// Memory for a conversation of 50 MB.
constexpr int64_t kTemplateMemoryBytes = int64_t{512} << 20;

// `message` is an object. Reasoning of earlier turns has several names, and transformers shows
// templates all of them.
ordered_json WithReasoning(const ordered_json& message) {
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    const auto found = message.find(name);
    if (found == message.end() || found->is_null()) continue;
    // The order of keys is transformers' as well, because a template may print the message.
    ordered_json named = {{"thinking", *found}};
    for (const auto& [key, value] : message.items()) named[key] = value;
    named["reasoning_content"] = *found;
    return named;
  }
  return message;
}

ordered_json Variables(const ChatInput& input,
                       const std::map<std::string, std::string>& named_tokens) {
  if (!input.messages.is_array()) Throw(ErrorKind::kInput, "the messages must be a list");
  ordered_json variables = ordered_json::object();
  variables["messages"] = ordered_json::array();
  for (const ordered_json& message : input.messages) {
    if (!message.is_object()) Throw(ErrorKind::kInput, "a message must be an object");
    variables["messages"].push_back(WithReasoning(message));
  }
  variables["tools"] = input.tools;
  variables["documents"] = nullptr;
  variables["add_generation_prompt"] = input.add_generation_prompt;
  for (const auto& [name, token] : named_tokens) variables[name] = token;
  for (const auto& [name, value] : input.extra.items()) variables[name] = value;
  return variables;
}

int64_t NowUnixS() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

ChatTemplate::ChatTemplate(std::string_view source, std::string what,
                           std::map<std::string, std::string> named_tokens)
    : named_tokens_(std::move(named_tokens)),
      source_(source),
      knows_tools_(source.find("tools") != source.npos),
      worker_(std::make_unique<TextWorker>(
          std::move(what), kTemplateMemoryBytes,
          WorkerFrame(WorkerRequest::kOpenTemplate).AddText(ReplaceInvalidUtf8(source)))) {
  worker_->Open();
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

bool ChatTemplate::Names(std::string_view role) const {
  return source_.find(fmt::format("'{}'", role)) != source_.npos ||
         source_.find(fmt::format("\"{}\"", role)) != source_.npos;
}

std::string ChatTemplate::Render(const ChatInput& input) const {
  const std::string variables = DumpJson(Variables(input, named_tokens_));
  WorkerFrame request(WorkerRequest::kRender);
  request.Add(input.now_unix_s.value_or(NowUnixS())).AddText(variables);
  try {
    return worker_->Call("rendering", std::move(request));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kMemory) throw;
    Throw(ErrorKind::kInput, "{}, for messages of {} bytes", error.what(), variables.size());
  }
}

bool SpellArguments(ordered_json& messages) {
  bool found = false;
  for (ordered_json& message : messages) {
    const auto calls = message.find("tool_calls");
    if (calls == message.end() || !calls->is_array()) continue;
    for (ordered_json& call : *calls) {
      if (!call.is_object() || !call.contains("function")) continue;
      ordered_json& function = call["function"];
      if (!function.is_object() || !function.contains("arguments")) continue;
      ordered_json& arguments = function["arguments"];
      if (!arguments.is_object()) continue;
      arguments = DumpJson(arguments);
      found = true;
    }
  }
  return found;
}

ordered_json ParseTemplateVariables(std::string_view text) {
  ordered_json variables;
  try {
    variables = ParseOrderedJson(text, "template variables");
  } catch (const Error& error) {
    throw Error(ErrorKind::kInput, error.what());
  }
  if (!variables.is_object()) {
    Throw(
        ErrorKind::kInput,
        "template variables: expected a JSON object such as {{\"enable_thinking\": false}}, found "
        "{}",
        Quote(text));
  }
  // A limit, because each variable's name is compared with the others.
  constexpr size_t kMaxVariables = 1000;
  if (variables.size() > kMaxVariables) {
    Throw(ErrorKind::kInput, "template variables: expected at most {}, found {}", kMaxVariables,
          variables.size());
  }
  for (const char* name : {"messages", "add_generation_prompt", "tools"}) {
    if (!variables.contains(name)) continue;
    Throw(ErrorKind::kInput, "template variables: {} is no variable to choose, the chat sets it",
          Quote(name));
  }
  return variables;
}

std::optional<ChatTemplate> LoadChatTemplate(std::optional<ChatTemplateSource> source,
                                             std::map<std::string, std::string> named_tokens) {
  if (!source) return std::nullopt;
  return ChatTemplate(source->text, std::move(source->what), std::move(named_tokens));
}

}  // namespace godwit
