#include <string>

#include "chat/answer_reader.h"
#include "tests/fuzz/targets.h"

namespace godwit::fuzz {
namespace {

const chat::CompletionRequest& Asked() {
  static const chat::CompletionRequest request =
      chat::ParseCompletionRequest(nlohmann::ordered_json::parse(R"({
        "messages": [{"role": "user", "content": "x"}],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties":
                    {"x": {"type": "integer"}, "s": {"type": "string"}}}}},
                  {"type": "function", "function": {"name": "g"}}]})"));
  return request;
}

chat::WholeAnswer Read(std::string_view text, const chat::AnswerForm& form, size_t piece) {
  chat::AnswerReader reader(Asked(), form);
  chat::AnswerPieces pieces;
  const auto add = [&](const chat::AnswerPieces& more) {
    pieces.insert(pieces.end(), more.begin(), more.end());
  };
  for (size_t at = 0; at < text.size(); at += piece) add(reader.Push(text.substr(at, piece)));
  add(reader.Finish());
  return chat::Join(pieces);
}

void Try(std::string_view text, const chat::AnswerForm& form) {
  const chat::WholeAnswer whole = Read(text, form, text.size() + 1);
  for (const auto& [name, arguments] : whole.calls) {
    Require(name == "f" || name == "g", "calls are of tools that were offered");
  }
  for (const size_t piece : {size_t{1}, size_t{5}}) {
    const chat::WholeAnswer said = Read(text, form, piece);
    Require(said.thought == whole.thought, "pieces change no thoughts");
    Require(said.text == whole.text, "pieces change no text");
    Require(said.calls == whole.calls, "pieces change no calls");
  }
  if (form.is_channels || !form.thought.end.empty() || !whole.calls.empty()) return;
  Require(whole.text == text, "without a call all is text");
}

}  // namespace

// Arbitrary output of a model, which is read the same in any pieces.
void FuzzToolCalls(std::span<const uint8_t> input) {
  const std::string_view text = AsText(input);
  Try(text, {});
  Try(text, chat::FormOf("", /*is_token=*/{}));
  Try(text, chat::FormOf("<think>", /*is_token=*/{}));
  Try(text, chat::FormOf("<|start|>assistant", /*is_token=*/{}));
  Try(text, chat::FormOf("", [](std::string_view token) { return token == "<|channel>"; }));
}

}  // namespace godwit::fuzz
