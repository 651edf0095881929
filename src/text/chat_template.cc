#include "text/chat_template.h"

#include <chrono>
#include <utility>

#include "base/error.h"
#include "text/text_worker.h"
#include "text/utf8.h"

namespace godwit {
namespace {

using nlohmann::ordered_json;

// Room for a conversation of 50 MB.
constexpr int64_t kMemoryBytes = int64_t{512} << 20;

// `message` is an object. Reasoning of earlier turns goes by several names; transformers shows
// templates all of them.
ordered_json WithReasoning(const ordered_json& message) {
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    const auto found = message.find(name);
    if (found == message.end() || found->is_null()) continue;
    // The order of the keys is transformers' as well: a template may print the message.
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
      worker_(std::make_unique<TextWorker>(
          std::move(what), kMemoryBytes,
          WorkerFrame(WorkerRequest::kOpenTemplate).AddText(ReplaceInvalidUtf8(source)))) {
  worker_->Open();
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::string ChatTemplate::Render(const ChatInput& input) const {
  const std::string variables =
      Variables(input, named_tokens_)
          .dump(-1, ' ', /*ensure_ascii=*/false, ordered_json::error_handler_t::replace);
  WorkerFrame request(WorkerRequest::kRender);
  request.Add(input.now_unix_s.value_or(NowUnixS())).AddText(variables);
  return worker_->Call("rendering", std::move(request));
}

std::optional<ChatTemplate> MakeChatTemplate(const TokenizerConfig& config) {
  if (!config.chat_template) return std::nullopt;
  return ChatTemplate(*config.chat_template, config.chat_template_file + ": chat template",
                      config.named_tokens);
}

}  // namespace godwit
