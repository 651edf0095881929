#include <nlohmann/json.hpp>
#include <string>

#include "chat/tool_calls.h"
#include "tests/fuzz/targets.h"

namespace godwit::fuzz {
namespace {

struct Said {
  std::string text;
  std::string calls;
};

void Add(const chat::SaidWithCalls& more, Said& said) {
  said.text += more.text;
  for (const chat::ToolCall& call : more.calls) {
    Require(call.name == "f" || call.name == "g", "calls are of tools that were offered");
    Require(nlohmann::json::parse(call.arguments).is_object(), "arguments are objects");
    said.calls += call.name + call.arguments;
  }
}

Said Read(std::string_view text, size_t piece) {
  chat::ToolCallReader reader({"f", "g"});
  Said said;
  for (size_t at = 0; at < text.size(); at += piece) Add(reader.Push(text.substr(at, piece)), said);
  Add(reader.Finish(), said);
  return said;
}

}  // namespace

// What a model says, of which nobody knows what it is: the same however it comes in pieces.
void FuzzToolCalls(std::span<const uint8_t> input) {
  const std::string_view text = AsText(input);
  const Said whole = Read(text, text.size() + 1);
  for (const size_t piece : {size_t{1}, size_t{5}}) {
    const Said said = Read(text, piece);
    Require(said.text == whole.text, "pieces change no text");
    Require(said.calls == whole.calls, "pieces change no calls");
  }
  Require(!whole.calls.empty() || whole.text == text, "without a call all is text");
}

}  // namespace godwit::fuzz
