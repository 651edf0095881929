// ToolCallReader: tool calls in the text of a model.
//
// Templates teach models several ways to write calls. All are read, for any model:
//
//   <tool_call>{"name": ..., "arguments": {...}}</tool_call>   Hermes, Qwen, Granite 4
//   <tool_call><function=f><parameter=x>1</parameter></function></tool_call>   Qwen3-Coder
//   <seed:tool_call><function=f><parameter=x>1</parameter></function></seed:tool_call>   Seed-OSS
//   <tool_call>f<arg_key>x</arg_key><arg_value>1</arg_value></tool_call>   GLM; Hunyuan 3 within
//                                                                          <tool_calls>
//   <minimax:tool_call><invoke name="f"><parameter name="x">1</parameter></invoke>...   MiniMax M2
//   <｜DSML｜function_calls><｜DSML｜invoke name="f">...   DeepSeek V3.2, with string="false"
//   <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{...}...   DeepSeek V3.1, R1
//   <|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{...}
//                                                                          Kimi K2
//   <|tool_call>call:f{x:1}<tool_call|>   Gemma 4
//   <|tool_call_start|>[f(x=1)]<|tool_call_end|>   LFM2
//   <TOOLCALL>[{"name": ...}]</TOOLCALL>   Nemotron Nano v2; Hunyuan with <tool_calls>
//   <|START_ACTION|>[{"tool_name": "f", ...}]<|END_ACTION|>   Command R7B and A
//   <|tools_prefix|>[{"f": {...}}]<|tools_suffix|>   Apertus
//   <|tool_call|>[{"name": ...}]<|/tool_call|>   Granite 3, Phi 4
//   [TOOL_CALLS][{"name": ...}], [TOOL_CALLS]f[ARGS]{...}   Mistral
//   <|python_tag|>{"name": ..., "parameters": {...}}   Llama 3
//
// Calls may stand anywhere in these marks. The JSON alone (Llama 3), behind "Action:" (Command R)
// or in a code fence (Qwen2.5-Coder) counts only at the beginning, if nothing else follows. So does
// the Python alone ([f(x=1)]: Llama 3.2). A mark within an argument is a part of it. Text that
// looks like a call but is not one, or calls a tool that was not offered, stays text.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "chat/answer_pieces.h"
#include "chat/call_readers.h"
#include "chat/gemma_call.h"
#include "chat/headed_call.h"
#include "chat/tools.h"

namespace godwit::chat {

// Reads an answer that arrives in pieces. Any text is accepted, at a cost linear in its length. The
// result does not depend on where the text is split into pieces.
class ToolCallReader {
 public:
  // tools: the offered tools, which outlive the reader. Without tools, everything is text.
  // only_calls: the text can be nothing but calls, so that JSON at its beginning is certain to be a
  // call.
  ToolCallReader(const Tools& tools, bool only_calls) : tools_(&tools), only_calls_(only_calls) {}

  void Push(std::string_view piece, AnswerPieces& out);
  // Adds, at the end of the answer, the pieces that were held back.
  void Finish(AnswerPieces& out);

  // Spellings of the marks that are special tokens in some models.
  static const std::vector<std::string>& Marks();

 private:
  enum class State {
    kFresh,   // nothing but blanks since the beginning or the last call
    kText,    // held_ may be the beginning of a mark
    kBegin,   // behind a mark, before a call
    kCall,    // within a call
    kBehind,  // behind a call, where another call or a mark may follow
  };
  struct Opening;

  void Feed(char c, AnswerPieces& out);
  void Settle(AnswerPieces& out);
  void Open(const Opening& opening);
  void FeedBegin(AnswerPieces& out);
  // Begins the call behind a mark that stands before each call. False: there is no such call.
  bool BeginItem(AnswerPieces& out);
  void FeedCall(char c, AnswerPieces& out);
  void FeedBehind(AnswerPieces& out);
  template <typename Call>
  void BeginCall(Call call, std::string_view first, AnswerPieces& out);
  void EndBlock(AnswerPieces& out);
  // Turns a failed call into text, up to `rest`, which is read again.
  void Fail(std::string rest, AnswerPieces& out);
  void Rescan(const std::string& text, AnswerPieces& out);
  AnswerPieces& Calls(AnswerPieces& out) { return is_whole_ ? pending_ : out; }

  static const Opening kOpenings[];

  const Tools* tools_;
  bool only_calls_;
  State state_ = State::kFresh;
  std::string held_;    // undecided text
  std::string blanks_;  // blanks before held_, which belong to a call if one follows
  std::string raw_;     // text of uncertain calls, from their mark on
  const Opening* opening_ = nullptr;
  std::variant<std::monostate, JsonCall, NamedCall, PythonCall, ParameterCall, HeadedCall,
               GemmaCall>
      call_;
  bool in_list_ = false;
  bool in_item_ = false;   // behind the mark of one call among several
  bool is_whole_ = false;  // these are calls only if nothing else follows
  AnswerPieces pending_;   // the calls that are held back until then
  bool called_ = false;
};

}  // namespace godwit::chat
