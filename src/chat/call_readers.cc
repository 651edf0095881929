#include "chat/call_readers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "chat/python_call.h"

namespace godwit::chat {
namespace {

using Json = nlohmann::ordered_json;
using Kind = AnswerPiece::Kind;

// Deeper than any arguments, and less deep than the point where JSON readers fail.
constexpr size_t kMaxDepth = 100;

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

const Json* FieldOf(const Json& object, std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    const auto found = object.find(name);
    if (found != object.end()) return &*found;
  }
  return nullptr;
}

std::optional<Json> ParsedJson(std::string_view text) {
  try {
    return ParseOrderedJson(text, "a call of a tool");
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<ToolCall> CallOf(const Json& value, const Tools& tools) {
  if (const Json* const inner = FieldOf(value, {"function"}); inner && inner->is_object()) {
    return CallOf(*inner, tools);
  }
  const Json* const name = FieldOf(value, {"name", "tool_name"});
  const Json* arguments = FieldOf(value, {"arguments", "parameters"});
  if (name == nullptr || !name->is_string() || arguments == nullptr ||
      !tools.Has(name->get_ref<const std::string&>())) {
    return std::nullopt;
  }
  std::optional<Json> parsed;
  if (arguments->is_string()) {
    parsed = ParsedJson(arguments->get_ref<const std::string&>());
    if (!parsed) return std::nullopt;
    arguments = &*parsed;
  }
  if (!arguments->is_object()) return std::nullopt;
  return ToolCall{.name = *name, .arguments = DumpJson(*arguments)};
}

void AddEscaped(char c, std::string& text) {
  if (c == '"' || c == '\\') {
    text += '\\';
    text += c;
  } else if (c == '\n') {
    text += "\\n";
  } else if (static_cast<unsigned char>(c) < 0x20) {
    text += fmt::format("\\u{:04x}", static_cast<int>(c));
  } else {
    text += c;
  }
}

}  // namespace

bool JsonText::Feed(char c, std::string& text) {
  if (in_text_) {
    if (static_cast<unsigned char>(c) < 0x20) {
      escaped_ = false;
      AddEscaped(c, text);
      return true;
    }
    text += c;
    if (escaped_) {
      escaped_ = false;
    } else {
      escaped_ = c == '\\';
      in_text_ = c != '"';
    }
    return true;
  }
  if (IsBlank(c)) return true;
  if (c == '{' || c == '[') {
    if (open_.size() == kMaxDepth) return false;
    open_ += c == '{' ? '}' : ']';
  } else if (c == '}' || c == ']') {
    if (open_.empty() || open_.back() != c) return false;
    open_.pop_back();
  } else if (c == '"') {
    in_text_ = true;
  } else if (!IsNameByte(c) && c != ':' && c != ',' && c != '+') {
    return false;
  }
  text += c;
  return true;
}

// Whether the text is a tool's name between the two parts.
bool JsonCall::BeginsBetween(std::string_view before, std::string_view behind, AnswerPieces& out) {
  if (text_.size() < before.size() + behind.size() || !text_.starts_with(before) ||
      !text_.ends_with(behind)) {
    return false;
  }
  const std::string_view name =
      std::string_view(text_).substr(before.size(), text_.size() - before.size() - behind.size());
  if (!tools_->Has(name)) return false;
  Add(out, Kind::kCall, name);
  return true;
}

// Whether the brace is reached with which the arguments begin.
bool JsonCall::Begins(AnswerPieces& out) {
  constexpr std::array<std::string_view, 2> kNames = {R"({"name":")", R"({"tool_name":")"};
  constexpr std::array<std::string_view, 2> kArguments = {R"(","arguments":{)",
                                                          R"(","parameters":{)"};
  for (const std::string_view before : kNames) {
    for (const std::string_view behind : kArguments) {
      if (BeginsBetween(before, behind, out)) return true;
    }
  }
  return by_key_ && BeginsBetween(R"({")", R"(":{)", out);
}

Reading JsonCall::Feed(char c, AnswerPieces& out) {
  const size_t before = json_.depth();
  std::string added;
  if (!json_.Feed(c, added)) return EndBefore(c);
  if (!began_) {
    text_ += added;
    began_ = in_arguments_ = before == 1 && json_.depth() == 2 && Begins(out);
    if (began_) added = "{";
  }
  if (in_arguments_) {
    Add(out, Kind::kArguments, added);
    in_arguments_ = json_.depth() > 1;
  }
  if (json_.depth() > 0) return Reading::kGoesOn;
  if (began_) return Reading::kDone;
  const auto value = ParsedJson(text_);
  const auto call = value ? CallOf(*value, *tools_) : std::nullopt;
  if (!call) return Reading::kEnded;
  began_ = true;
  Add(out, Kind::kCall, call->name);
  Add(out, Kind::kArguments, call->arguments);
  return Reading::kDone;
}

Reading NamedCall::Feed(char c, AnswerPieces& out) {
  if (!began_) {
    if (c == '{' && tools_->Has(name_)) {
      began_ = true;
      Add(out, Kind::kCall, name_);
    } else if (mark_.empty() && c != '[' && IsNameByte(c)) {
      name_ += c;
      return Reading::kGoesOn;
    } else {
      const bool has_name = tools_->Has(name_) && (!mark_.empty() || c == '[' || IsBlank(c));
      if (!has_name) return EndBefore(c);
      constexpr size_t kMaxMarkBytes = 64;
      mark_ += c;
      const bool is_mark = mark_.starts_with("[ARGS]") || mark_.starts_with("[CALL_ID]") ||
                           std::string_view("[ARGS]").starts_with(mark_) ||
                           std::string_view("[CALL_ID]").starts_with(mark_) || IsBlank(mark_[0]);
      return is_mark && mark_.size() < kMaxMarkBytes ? Reading::kGoesOn : EndBefore(c);
    }
  }
  std::string added;
  if (!json_.Feed(c, added)) return EndBefore(c);
  Add(out, Kind::kArguments, added);
  return json_.depth() > 0 ? Reading::kGoesOn : Reading::kDone;
}

Reading PythonCall::Feed(char c, AnswerPieces& out) {
  if (depth_ == 0) {
    const bool begins = c == '(' && tools_->Has(text_);
    if (!begins && !IsNameByte(c)) return EndBefore(c);
    text_ += c;
    depth_ = begins ? 1 : 0;
    return Reading::kGoesOn;
  }
  text_ += c;
  if (quote_ != 0) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == quote_) {
      quote_ = 0;
    }
    return Reading::kGoesOn;
  }
  if (c == '"' || c == '\'') quote_ = c;
  if (c == '(' || c == '[' || c == '{') ++depth_;
  if (c == ')' || c == ']' || c == '}') --depth_;
  if (depth_ > 0) return Reading::kGoesOn;
  const auto call = ParsePythonCall(text_);
  if (!call) return Reading::kEnded;
  began_ = true;
  Add(out, Kind::kCall, call->name);
  Add(out, Kind::kArguments, call->arguments);
  return Reading::kDone;
}

const ParameterMarks kFunctionMarks = {.name_end = ">",
                                       .key_begin = "<parameter=",
                                       .key_end = ">",
                                       .value_begin = "",
                                       .value_end = "</parameter>",
                                       .call_end = "</function>",
                                       .block_end = "</tool_call>",
                                       .own_lines = true};
const ParameterMarks kSeedMarks = {.name_end = ">",
                                   .key_begin = "<parameter=",
                                   .key_end = ">",
                                   .value_begin = "",
                                   .value_end = "</parameter>",
                                   .call_end = "</function>",
                                   .block_end = "</seed:tool_call>",
                                   .own_lines = false};
const ParameterMarks kInvokeMarks = {.name_end = "\">",
                                     .key_begin = "<parameter name=\"",
                                     .key_end = "\"",
                                     .value_begin = "",
                                     .value_end = "</parameter>",
                                     .call_end = "</invoke>",
                                     .block_end = "</minimax:tool_call>",
                                     .own_lines = false,
                                     .has_attributes = true};
const ParameterMarks kDsmlMarks = {.name_end = "\">",
                                   .key_begin = "<｜DSML｜parameter name=\"",
                                   .key_end = "\"",
                                   .value_begin = "",
                                   .value_end = "</｜DSML｜parameter>",
                                   .call_end = "</｜DSML｜invoke>",
                                   .block_end = "",
                                   .own_lines = false,
                                   .has_attributes = true};
const ParameterMarks kArgKeyMarks = {.name_end = "",
                                     .key_begin = "<arg_key>",
                                     .key_end = "</arg_key>",
                                     .value_begin = "<arg_value>",
                                     .value_end = "</arg_value>",
                                     .call_end = "",
                                     .block_end = "</tool_call>",
                                     .own_lines = false};

ParameterCall::Found ParameterCall::Match(std::string_view text) const {
  const struct {
    std::string_view mark;
    Found found;
  } all[] = {{marks_->key_begin, Found::kKey},
             {marks_->call_end, Found::kCallEnd},
             {marks_->block_end, Found::kBlockEnd}};
  bool partly = false;
  for (const auto& [mark, found] : all) {
    if (mark.empty()) continue;
    if (text == mark) return found;
    partly = partly || mark.starts_with(text);
  }
  return partly ? Found::kPartly : Found::kNo;
}

// The end mark ends a value only if the call continues or ends behind it.
ParameterCall::Found ParameterCall::MatchValueEnd(std::string_view text) const {
  constexpr size_t kMaxBlanks = 64;
  if (marks_->own_lines && text.starts_with('\n')) text.remove_prefix(1);
  const std::string_view end = marks_->value_end;
  if (end.starts_with(text)) return Found::kPartly;
  if (!text.starts_with(end)) return Found::kNo;
  text.remove_prefix(end.size());
  const size_t blanks = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  if (blanks > kMaxBlanks) return Found::kNo;
  return Match(text.substr(blanks));
}

void ParameterCall::Begin(AnswerPieces& out) {
  if (began_) return;
  began_ = true;
  Add(out, Kind::kCall, name_);
}

Reading ParameterCall::Feed(char c, AnswerPieces& out) {
  switch (state_) {
    case State::kName:
      return FeedName(c, out);
    case State::kBetween:
      held_ += c;
      return FeedBetween(out);
    case State::kJson: {
      std::string added;
      if (!json_.Feed(c, added)) return EndBefore(c);
      Add(out, Kind::kArguments, added);
      if (json_.depth() == 0) state_ = State::kBetween;
      return Reading::kGoesOn;
    }
    case State::kKey:
      key_ += c;
      if (!key_.ends_with(marks_->key_end)) return Reading::kGoesOn;
      key_.resize(key_.size() - marks_->key_end.size());
      if (marks_->has_attributes) {
        attributes_.clear();
        state_ = State::kAttributes;
      } else if (marks_->value_begin.empty()) {
        BeginValue(std::nullopt, out);
      } else {
        state_ = State::kBeforeValue;
      }
      return Reading::kGoesOn;
    case State::kAttributes:
      return FeedAttributes(c, out);
    case State::kBeforeValue:
      held_ += c;
      return FeedBeforeValue(out);
    case State::kValue:
      held_ += c;
      return FeedValue(out);
  }
  return Reading::kEnded;
}

Reading ParameterCall::FeedName(char c, AnswerPieces& out) {
  if (held_.empty() && IsNameByte(c)) {
    name_ += c;
    return Reading::kGoesOn;
  }
  const std::string_view end = marks_->name_end;
  if (!tools_->Has(name_)) return EndBefore(c);
  if (end.empty()) return EndName(c, out);
  held_ += c;
  if (!end.starts_with(held_)) return EndBefore(c);
  if (held_ != end) return Reading::kGoesOn;
  held_.clear();
  state_ = State::kBetween;
  return Reading::kGoesOn;
}

// Ends a name that has no mark behind it.
Reading ParameterCall::EndName(char c, AnswerPieces& out) {
  if (c != '<' && !IsBlank(c)) return EndBefore(c);
  state_ = State::kBetween;
  held_ = c;
  return FeedBetween(out);
}

Reading ParameterCall::FeedAttributes(char c, AnswerPieces& out) {
  if (c != '>') {
    attributes_ += c;
    return Reading::kGoesOn;
  }
  std::optional<bool> is_text;
  if (attributes_.find("string=\"true\"") != attributes_.npos) is_text = true;
  if (attributes_.find("string=\"false\"") != attributes_.npos) is_text = false;
  BeginValue(is_text, out);
  return Reading::kGoesOn;
}

bool ParameterCall::IsAside() const {
  constexpr std::string_view kFence = "```json", kFenceEnd = "```", kNameEnd = "<tool_sep>";
  if (by_json_) return kFenceEnd.starts_with(held_);
  return !began_ &&
         (kFence.starts_with(held_) || (marks_ == &kArgKeyMarks && kNameEnd.starts_with(held_)));
}

Reading ParameterCall::FeedBetween(AnswerPieces& out) {
  if (held_.size() == 1 && IsBlank(held_.front())) {
    held_.clear();
    return Reading::kGoesOn;
  }
  if (held_ == "{" && !began_) {
    Begin(out);
    by_json_ = true;
    state_ = State::kJson;
    held_.clear();
    std::string added;
    json_.Feed('{', added);
    Add(out, Kind::kArguments, added);
    return Reading::kGoesOn;
  }
  const Found found = Match(held_);
  if ((found != Found::kNo && found != Found::kPartly) || !IsAside()) return Go(found, out);
  if (held_ == (by_json_ ? "```" : "```json") || held_ == "<tool_sep>") held_.clear();
  return Reading::kGoesOn;
}

// Moves to what was found between parameters or behind them.
Reading ParameterCall::Go(Found found, AnswerPieces& out) {
  if (by_json_ && found == Found::kKey) found = Found::kNo;
  switch (found) {
    case Found::kPartly:
      return Reading::kGoesOn;
    case Found::kKey:
      Begin(out);
      held_.clear();
      Add(out, Kind::kArguments, has_parameter_ ? "," : "{");
      has_parameter_ = true;
      key_.clear();
      state_ = State::kKey;
      return Reading::kGoesOn;
    case Found::kNo:
      if (!began_) return Reading::kEnded;
      [[fallthrough]];
    case Found::kCallEnd:
    case Found::kBlockEnd:
      Begin(out);
      if (!by_json_) Add(out, Kind::kArguments, has_parameter_ ? "}" : "{}");
      if (found != Found::kCallEnd) return Reading::kEnded;
      held_.clear();
      return Reading::kDone;
  }
  return Reading::kEnded;
}

Reading ParameterCall::FeedBeforeValue(AnswerPieces& out) {
  if (held_.size() == 1 && IsBlank(held_.front())) {
    held_.clear();
  } else if (held_ == marks_->value_begin) {
    held_.clear();
    BeginValue(std::nullopt, out);
  } else if (!marks_->value_begin.starts_with(held_)) {
    return Reading::kEnded;
  }
  return Reading::kGoesOn;
}

void ParameterCall::BeginValue(std::optional<bool> is_text, AnswerPieces& out) {
  state_ = State::kValue;
  value_.clear();
  value_begins_ = true;
  is_text_ = is_text.value_or(tools_->IsText(name_, key_));
  std::string key = "\"";
  for (const char c : key_) AddEscaped(c, key);
  Add(out, Kind::kArguments, key + (is_text_ ? "\":\"" : "\":"));
}

void ParameterCall::AddToValue(char c, AnswerPieces& out) {
  const bool is_first = std::exchange(value_begins_, false);
  if (is_first && marks_->own_lines && c == '\n') return;
  if (!is_text_) {
    value_ += c;
    return;
  }
  std::string escaped;
  AddEscaped(c, escaped);
  Add(out, Kind::kArguments, escaped);
}

void ParameterCall::EndValue(AnswerPieces& out) {
  if (is_text_) {
    Add(out, Kind::kArguments, "\"");
    return;
  }
  const auto json = ParsedJson(value_);
  const auto python = json ? std::nullopt : ParsePythonLiteral(value_);
  Add(out, Kind::kArguments, json ? DumpJson(*json) : python ? *python : DumpJson(Json(value_)));
}

Reading ParameterCall::FeedValue(AnswerPieces& out) {
  while (!held_.empty()) {
    // A value's first newline is not the newline before its end mark.
    const bool own_line = value_begins_ && marks_->own_lines && held_.front() == '\n';
    const Found found = own_line ? Found::kNo : MatchValueEnd(held_);
    if (found == Found::kPartly) return Reading::kGoesOn;
    if (found == Found::kNo) {
      AddToValue(held_.front(), out);
      held_.erase(0, 1);
      continue;
    }
    EndValue(out);
    state_ = State::kBetween;
    held_ = held_.substr(held_.rfind('<'));
    return Go(found, out);
  }
  return Reading::kGoesOn;
}

void ParameterCall::Finish(AnswerPieces& out) {
  if (state_ != State::kValue || !began_) return;
  std::string_view end = held_;
  if (marks_->own_lines && end.starts_with('\n')) end.remove_prefix(1);
  if (end.starts_with(marks_->value_end)) return EndValue(out);
  for (const char c : held_) AddToValue(c, out);
}

}  // namespace godwit::chat
