// One call of a tool, in each of the ways in which models write one, a byte at a time.
//
// All have the same shape: Feed takes the next byte and says whether it belongs to the call. Where
// it does not, rest() is what was taken of the text behind it, that byte included. began(): it is
// certain to be a call, and its name was said.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/answer_pieces.h"
#include "chat/tools.h"

namespace godwit::chat {

enum class Reading { kGoesOn, kDone, kEnded };

// JSON as it is written, less its blanks, and with the control characters that models put into
// texts escaped.
class JsonText {
 public:
  // Adds what comes of it. False: JSON has it not there.
  bool Feed(char c, std::string& text);
  // Objects and lists that are open.
  size_t depth() const { return open_.size(); }

 private:
  std::string open_;  // how they will end
  bool in_text_ = false;
  bool escaped_ = false;
};

// {"name": ..., "arguments": {...}}, also with "parameters", within {"function": ...}, with
// arguments that are a text of JSON. The name first, its arguments come as they are written.
class JsonCall {
 public:
  explicit JsonCall(const Tools& tools) : tools_(&tools) {}
  Reading Feed(char c, AnswerPieces& out);
  void Finish(AnswerPieces& /*out*/) {}
  bool began() const { return began_; }
  const std::string& rest() const { return rest_; }

 private:
  bool Begins(AnswerPieces& out);

  const Tools* tools_;
  JsonText json_;
  std::string text_;
  bool began_ = false;
  bool in_arguments_ = false;
  std::string rest_;
};

// NAME[ARGS]{...}, also with [CALL_ID]... before the arguments, and without these marks (Mistral).
class NamedCall {
 public:
  explicit NamedCall(const Tools& tools) : tools_(&tools) {}
  Reading Feed(char c, AnswerPieces& out);
  void Finish(AnswerPieces& /*out*/) {}
  bool began() const { return began_; }
  const std::string& rest() const { return rest_; }

 private:
  const Tools* tools_;
  JsonText json_;
  std::string name_, mark_;
  bool began_ = false;
  std::string rest_;
};

// name(key="value", other=[1, None]) as Python has it.
class PythonCall {
 public:
  explicit PythonCall(const Tools& tools) : tools_(&tools) {}
  Reading Feed(char c, AnswerPieces& out);
  void Finish(AnswerPieces& /*out*/) {}
  bool began() const { return began_; }
  const std::string& rest() const { return rest_; }

 private:
  const Tools* tools_;
  std::string text_;
  size_t depth_ = 0;
  char quote_ = 0;
  bool escaped_ = false;
  bool began_ = false;
  std::string rest_;
};

// The marks between which parameters stand.
struct ParameterMarks {
  std::string_view name_end;  // "": the name ends where a line or a mark begins
  std::string_view key_begin, key_end;
  std::string_view value_begin;  // "": behind key_end
  std::string_view value_end;
  std::string_view call_end;
  std::string_view block_end;  // ends the call, too, and is none of it
  bool own_lines;              // a line break around a value is not of it
};
// <function=NAME><parameter=KEY>VALUE</parameter></function>, of Qwen3-Coder.
extern const ParameterMarks kFunctionMarks;
// NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>, of GLM.
extern const ParameterMarks kArgKeyMarks;

// A call in such marks, read from its name on. Values are texts where the tool's schema says so,
// else JSON if they are such.
class ParameterCall {
 public:
  ParameterCall(const Tools& tools, const ParameterMarks& marks) : tools_(&tools), marks_(&marks) {}
  Reading Feed(char c, AnswerPieces& out);
  // Of a call that is cut off.
  void Finish(AnswerPieces& out);
  bool began() const { return began_; }
  const std::string& rest() const { return held_; }

 private:
  enum class State { kName, kBetween, kJson, kKey, kBeforeValue, kValue };
  enum class Found { kNo, kPartly, kKey, kCallEnd, kBlockEnd };

  Reading FeedName(char c, AnswerPieces& out);
  Reading FeedBetween(AnswerPieces& out);
  Reading FeedBeforeValue(AnswerPieces& out);
  Reading FeedValue(AnswerPieces& out);
  Reading Go(Found found, AnswerPieces& out);
  Found Match(std::string_view text) const;
  Found MatchValueEnd(std::string_view text) const;
  void Begin(AnswerPieces& out);
  void BeginValue(AnswerPieces& out);
  void AddToValue(char c, AnswerPieces& out);
  void EndValue(AnswerPieces& out);

  const Tools* tools_;
  const ParameterMarks* marks_;
  State state_ = State::kName;
  std::string name_, key_, value_;
  std::string held_;
  JsonText json_;
  bool began_ = false;
  bool by_json_ = false;  // all parameters in one object
  bool has_parameter_ = false;
  bool is_text_ = false;       // the value
  bool value_begins_ = false;  // nothing of it has come
};

}  // namespace godwit::chat
