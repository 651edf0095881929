// One call of a tool, in each of the ways in which models write one, a byte at a time.
//
// All have a Feed, which takes the next byte and says whether it belongs to the call, and a Finish,
// for a call that is cut off.
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

// The parts that all have.
class CallReader {
 public:
  void Finish(AnswerPieces& /*out*/) {}
  // It is certain to be a call, and its name was said.
  bool began() const { return began_; }
  // Behind a byte that does not belong to the call: what was taken of the text behind it, that byte
  // included.
  const std::string& rest() const { return held_; }

 protected:
  explicit CallReader(const Tools& tools) : tools_(&tools) {}
  Reading EndBefore(char c) {
    held_ = c;
    return Reading::kEnded;
  }

  const Tools* tools_;
  bool began_ = false;
  std::string held_;  // of which it is open whether it belongs to the call
};

// {"name": ..., "arguments": {...}}, also with "parameters", within {"function": ...}, with
// arguments that are a text of JSON. The name first, its arguments come as they are written.
class JsonCall : public CallReader {
 public:
  explicit JsonCall(const Tools& tools) : CallReader(tools) {}
  Reading Feed(char c, AnswerPieces& out);

 private:
  bool Begins(AnswerPieces& out);

  JsonText json_;
  std::string text_;
  bool in_arguments_ = false;
};

// NAME[ARGS]{...}, also with [CALL_ID]... before the arguments, and without these marks (Mistral).
class NamedCall : public CallReader {
 public:
  explicit NamedCall(const Tools& tools) : CallReader(tools) {}
  Reading Feed(char c, AnswerPieces& out);

 private:
  JsonText json_;
  std::string name_, mark_;
};

// name(key="value", other=[1, None]) as Python has it.
class PythonCall : public CallReader {
 public:
  explicit PythonCall(const Tools& tools) : CallReader(tools) {}
  Reading Feed(char c, AnswerPieces& out);

 private:
  std::string text_;
  size_t depth_ = 0;
  char quote_ = 0;
  bool escaped_ = false;
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
class ParameterCall : public CallReader {
 public:
  ParameterCall(const Tools& tools, const ParameterMarks& marks)
      : CallReader(tools), marks_(&marks) {}
  Reading Feed(char c, AnswerPieces& out);
  void Finish(AnswerPieces& out);

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

  const ParameterMarks* marks_;
  State state_ = State::kName;
  std::string name_, key_, value_;
  JsonText json_;
  bool by_json_ = false;  // all parameters in one object
  bool has_parameter_ = false;
  bool is_text_ = false;       // the value
  bool value_begins_ = false;  // nothing of it has come
};

}  // namespace godwit::chat
