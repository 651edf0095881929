// Calls of tools in what a model says.
//
// Templates teach models to write them in several ways, of which all are read, whichever the model:
// <tool_call>{"name", "arguments"}</tool_call> anywhere (Hermes, Qwen), and at the beginning, also
// behind its thoughts, JSON of one or a list, with "parameters" for "arguments" (Llama 3), behind
// [TOOL_CALLS] (Mistral) or in an "Action:" of "tool_name" (Command R). What looks like one and is
// none, or is none of a tool that was offered, is text.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace godwit::chat {

struct ToolCall {
  std::string name;
  std::string arguments;  // a JSON object

  friend bool operator==(const ToolCall&, const ToolCall&) = default;
};

struct SaidWithCalls {
  std::string text;  // certain not to belong to a call
  std::vector<ToolCall> calls;
};

// Of an answer that comes in pieces. Any text: never fails. The cost is linear in it.
class ToolCallReader {
 public:
  // names: of the tools that were offered. None: all is text.
  explicit ToolCallReader(std::vector<std::string> names) : names_(std::move(names)) {}

  SaidWithCalls Push(std::string_view piece);
  // What was held back, at the end.
  SaidWithCalls Finish();

 private:
  enum class State {
    kFresh,   // nothing but blanks has come, or since the end of the thoughts
    kText,    // held_ may be the beginning of a mark
    kTagged,  // held_ has <tool_call> at tag_, behind blanks
    kWhole,   // held_ is, as it seems, calls up to the end
  };

  bool Step(SaidWithCalls& said);
  void Release(size_t bytes, SaidWithCalls& said);
  // Of all that is held, whose calls stand in `body`, a part of it; else it is text.
  void TakeCalls(std::string_view body, size_t bytes, SaidWithCalls& said);

  std::vector<std::string> names_;
  State state_ = State::kFresh;
  std::string held_;
  size_t tag_ = 0;
  size_t searched_ = 0;  // of held_, for the end of a call
  bool called_ = false;
};

}  // namespace godwit::chat
