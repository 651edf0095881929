// Calls of tools in what a model says.
//
// Templates teach models to write them in several ways, of which all are read, whichever the model:
//
//   <tool_call>{"name": ..., "arguments": {...}}</tool_call>   Hermes, Qwen, Granite 4
//   <tool_call><function=f><parameter=x>1</parameter></function></tool_call>   Qwen3-Coder
//   <tool_call>f<arg_key>x</arg_key><arg_value>1</arg_value></tool_call>   GLM
//   <|tool_call_start|>[f(x=1)]<|tool_call_end|>   LFM2
//   <|tool_call|>[{"name": ...}]<|/tool_call|>   Granite 3, Phi 4
//   [TOOL_CALLS][{"name": ...}], [TOOL_CALLS]f[ARGS]{...}   Mistral
//   <|python_tag|>{"name": ..., "parameters": {...}}   Llama 3
//
// anywhere, and at the beginning, if nothing else follows, the JSON alone (Llama 3), behind
// "Action:" (Command R) or in a code fence (Qwen2.5-Coder), and the Python ([f(x=1)]: Llama 3.2). A
// mark within an argument is a part of it. What looks like a call and is none, or is none of a tool
// that was offered, is text.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "chat/answer_pieces.h"
#include "chat/call_readers.h"
#include "chat/tools.h"

namespace godwit::chat {

// Of an answer that comes in pieces. Any text: never fails. The cost is linear in it, and what is
// read does not depend on where the pieces part it.
class ToolCallReader {
 public:
  // tools: those that were offered, which outlive it; none: all is text. only_calls: the text can
  // be nothing else, so that the first of their JSON is certain to be a call.
  ToolCallReader(const Tools& tools, bool only_calls) : tools_(&tools), only_calls_(only_calls) {}

  void Push(std::string_view piece, AnswerPieces& out);
  // What was held back, at the end.
  void Finish(AnswerPieces& out);

  // How the marks are spelled that some models have as special tokens.
  static const std::vector<std::string>& Marks();

 private:
  enum class State {
    kFresh,   // nothing but blanks has come, or since the last call
    kText,    // held_ may be the beginning of a mark
    kBegin,   // before a call, behind a mark
    kCall,    // within it
    kBehind,  // behind a call, where others or a mark may follow
  };
  struct Opening;

  void Feed(char c, AnswerPieces& out);
  void Settle(AnswerPieces& out);
  void Open(const Opening& opening);
  void FeedBegin(AnswerPieces& out);
  void FeedCall(char c, AnswerPieces& out);
  void FeedBehind(AnswerPieces& out);
  template <typename Call>
  void BeginCall(Call call, std::string_view first, AnswerPieces& out);
  void EndBlock(AnswerPieces& out);
  // It was none: text up to `rest`, which is read again.
  void Fail(std::string rest, AnswerPieces& out);
  void Again(const std::string& text, AnswerPieces& out);
  AnswerPieces& Calls(AnswerPieces& out) { return is_whole_ ? pending_ : out; }

  static const Opening kOpenings[];

  const Tools* tools_;
  bool only_calls_;
  State state_ = State::kFresh;
  std::string held_;    // that is not decided
  std::string blanks_;  // before it, which belong to a call if one follows
  std::string raw_;     // of calls that are not certain, from their mark on
  const Opening* opening_ = nullptr;
  std::variant<std::monostate, JsonCall, NamedCall, PythonCall, ParameterCall> call_;
  bool in_list_ = false;
  bool is_whole_ = false;  // these are calls only if nothing else follows,
  AnswerPieces pending_;   // until which they are held back
  bool called_ = false;
};

}  // namespace godwit::chat
