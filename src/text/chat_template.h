// ChatTemplate: turns messages into the one text on which a chat model was trained.
//
// The template is Jinja, rendered by minijinja set up as transformers sets up Jinja2. It has the
// same whitespace rules, Python's string methods, tojson without HTML escapes, raise_exception,
// strftime_now, {% generation %}. There is no built-in fallback: a template that fails is an error.
// Known difference: a loop over none is a loop over nothing, where Jinja refuses. The text usually
// begins with the BOS already: encode it with add_special_tokens = false, or the model sees two. It
// runs in a process of its own, within limits (text_worker.h). Immutable: threads may share one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "text/tokenizer_config.h"

namespace godwit {

class TextWorker;

struct ChatInput {
  // A list of objects as the OpenAI API has them: {"role": "user", "content": "..."}, and whatever
  // else the template understands ("tool_calls", ...).
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  // Whether the text ends with the opening of the assistant's turn.
  bool add_generation_prompt = true;
  nlohmann::ordered_json tools = nullptr;  // a list of tool schemas, or null
  // More variables, which win over all others: {"enable_thinking": false}.
  nlohmann::ordered_json extra = nlohmann::ordered_json::object();
  std::optional<int64_t> now_unix_s;  // what strftime_now() tells; the current time if absent
};

class ChatTemplate {
 public:
  // `what` names the template in messages. `named_tokens` ("bos_token" -> "<s>") become variables.
  // Throws Error(kFormat) with the line of a syntax error.
  ChatTemplate(std::string_view source, std::string what,
               std::map<std::string, std::string> named_tokens);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  const std::string& source() const { return source_; }
  // Whether it does something with ChatInput::tools.
  bool knows_tools() const { return knows_tools_; }
  // Whether it does something of its own with messages of that role.
  bool Names(std::string_view role) const;

  // Renders the messages. Throws Error(kInput) with line and reason where the template refuses them
  // (it calls raise_exception). Throws Error(kFormat) with line and reason where it fails or takes
  // too long, Error(kMemory) where it takes too much. Bytes in strings that are not UTF-8 become
  // U+FFFD.
  std::string Render(const ChatInput& input) const;

 private:
  std::map<std::string, std::string> named_tokens_;
  std::string source_;
  bool knows_tools_;
  std::unique_ptr<TextWorker> worker_;
};

// Turns the arguments of tool calls, which are objects, into text of JSON, as some templates expect
// them (DeepSeek V3.1, Apertus). False: there are none.
bool SpellArguments(nlohmann::ordered_json& messages);

// ChatInput::extra out of the text of a JSON object. Throws Error(kInput) for anything else, and
// for the names that the other fields of ChatInput have.
nlohmann::ordered_json ParseTemplateVariables(std::string_view text);

// The template of a model; nullopt where it has none. Throws what the constructor throws.
std::optional<ChatTemplate> LoadChatTemplate(std::optional<ChatTemplateSource> source,
                                             std::map<std::string, std::string> named_tokens);

}  // namespace godwit
