// Readers of one tool call, one for each way in which models write calls, a byte at a time.
//
// Each has a Feed, which takes the next byte and says whether it belongs to the call. Each has a
// Finish for a call that is cut off.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/answer_pieces.h"
#include "chat/tools.h"

namespace godwit::chat {

enum class Reading { kGoesOn, kDone, kEnded };

// JSON text without its blanks. Control characters that models put into strings become escapes.
class JsonText {
 public:
  // Adds the byte, or its replacement, to the text. False: JSON does not allow the byte there.
  bool Feed(char c, std::string& text);
  // The number of open objects and lists.
  size_t depth() const { return open_.size(); }
  // Whether the next byte belongs to a string.
  bool in_text() const { return in_text_; }

 private:
  std::string open_;  // closing characters of the open objects and lists
  bool in_text_ = false;
  bool escaped_ = false;
};

// The parts that all readers share.
class CallReader {
 public:
  void Finish(AnswerPieces& /*out*/) {}
  // Whether the text is certainly a call, so that its name was added to the answer.
  bool began() const { return began_; }
  // The text that was taken but lies behind the call: it ends with the byte that does not belong to
  // the call.
  const std::string& rest() const { return held_; }

 protected:
  explicit CallReader(const Tools& tools) : tools_(&tools) {}
  Reading EndBefore(char c) {
    held_ = c;
    return Reading::kEnded;
  }

  const Tools* tools_;
  bool began_ = false;
  std::string held_;  // text that may or may not belong to the call
};

// Reads {"name": ..., "arguments": {...}}, also with "parameters", within {"function": ...}, or
// with arguments as a string of JSON. If the name comes first, arguments are passed on as they
// arrive. by_key: also {NAME: {...}} (Apertus).
class JsonCall : public CallReader {
 public:
  explicit JsonCall(const Tools& tools, bool by_key = false) : CallReader(tools), by_key_(by_key) {}
  Reading Feed(char c, AnswerPieces& out);

 private:
  bool BeginsBetween(std::string_view before, std::string_view behind, AnswerPieces& out);
  bool Begins(AnswerPieces& out);

  bool by_key_;
  JsonText json_;
  std::string text_;
  bool in_arguments_ = false;
};

// Reads NAME[ARGS]{...}, also with [CALL_ID]... before the arguments, and without these marks
// (Mistral).
class NamedCall : public CallReader {
 public:
  explicit NamedCall(const Tools& tools) : CallReader(tools) {}
  Reading Feed(char c, AnswerPieces& out);

 private:
  JsonText json_;
  std::string name_, mark_;
};

// Reads name(key="value", other=[1, None]) in Python's syntax.
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

// The marks around parameters and their values.
struct ParameterMarks {
  std::string_view name_end;  // "": the name ends where a line or a mark begins
  std::string_view key_begin, key_end;
  std::string_view value_begin;  // "": the value begins behind key_end
  std::string_view value_end;
  std::string_view call_end;
  std::string_view block_end;  // also ends the call, without belonging to it
  bool own_lines;              // a line break around a value does not belong to it
  // Whether string="true" or string="false", which says if the value is text, may stand before the
  // ">" behind key_end.
  bool has_attributes = false;
};
// Marks of Qwen3-Coder: <function=NAME><parameter=KEY>VALUE</parameter></function>.
extern const ParameterMarks kFunctionMarks;
// Marks of Seed-OSS, which are the same but for the lines.
extern const ParameterMarks kSeedMarks;
// Marks of GLM and Hunyuan 3: NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>.
extern const ParameterMarks kArgKeyMarks;
// Marks of MiniMax: <invoke name="NAME"><parameter name="KEY">VALUE</parameter></invoke>.
extern const ParameterMarks kInvokeMarks;
// Marks of DeepSeek V3.2, which are the same with attributes and with DSML in them.
extern const ParameterMarks kDsmlMarks;

// Reads a call with parameter marks, from its name on. A value is a string where an attribute or
// the tool's schema says so, else JSON if it parses as JSON. Behind the name may stand one object
// of JSON instead, also in a code fence (Hunyuan).
class ParameterCall : public CallReader {
 public:
  ParameterCall(const Tools& tools, const ParameterMarks& marks)
      : CallReader(tools), marks_(&marks) {}
  Reading Feed(char c, AnswerPieces& out);
  void Finish(AnswerPieces& out);

 private:
  enum class State { kName, kBetween, kJson, kKey, kAttributes, kBeforeValue, kValue };
  enum class Found { kNo, kPartly, kKey, kCallEnd, kBlockEnd };

  Reading FeedName(char c, AnswerPieces& out);
  Reading EndName(char c, AnswerPieces& out);
  Reading FeedBetween(AnswerPieces& out);
  Reading FeedAttributes(char c, AnswerPieces& out);
  // Whether held_ is, or may become, one of the marks around JSON and behind names.
  bool IsAside() const;
  Reading FeedBeforeValue(AnswerPieces& out);
  Reading FeedValue(AnswerPieces& out);
  Reading Go(Found found, AnswerPieces& out);
  Found Match(std::string_view text) const;
  Found MatchValueEnd(std::string_view text) const;
  void Begin(AnswerPieces& out);
  void BeginValue(std::optional<bool> is_text, AnswerPieces& out);
  void AddToValue(char c, AnswerPieces& out);
  void EndValue(AnswerPieces& out);

  const ParameterMarks* marks_;
  State state_ = State::kName;
  std::string name_, key_, attributes_, value_;
  JsonText json_;
  bool by_json_ = false;  // all parameters are in one JSON object
  bool has_parameter_ = false;
  bool is_text_ = false;       // whether the value is a string
  bool value_begins_ = false;  // whether nothing of the value has arrived
};

}  // namespace godwit::chat
