#include "chat/tool_calls.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace godwit::chat {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kTag = "<tool_call>", kEndOfTag = "</tool_call>";
constexpr std::string_view kEndOfThoughts = "</think>";
// What calls up to the end of the text begin with.
constexpr std::array<std::string_view, 4> kBeginnings = {"{", "[", "<|python_tag|>", "Action:"};
constexpr std::array<std::string_view, 4> kLabels = {"[TOOL_CALLS]", "<|python_tag|>",
                                                     "Action:", "```json"};

std::string_view SkipBlanks(std::string_view text, std::string_view blanks = kBlanks) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text;
}

// The bytes at the end of `text` that may be the beginning of `mark`.
size_t Begun(std::string_view text, std::string_view mark) {
  size_t bytes = std::min(text.size(), mark.size() - 1);
  while (!text.ends_with(mark.substr(0, bytes))) --bytes;
  return bytes;
}

// The object or list at the beginning of `text`, which begins so; empty: it has no end.
std::string_view FirstValue(std::string_view text) {
  int64_t depth = 0;
  bool in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      i += c == '\\' ? 1 : 0;
      in_text = c != '"';
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return text.substr(0, i + 1);
    }
  }
  return {};
}

const Json* Find(const Json& object, std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    const auto found = object.find(name);
    if (found != object.end()) return &*found;
  }
  return nullptr;
}

std::optional<ToolCall> CallOf(const Json& value, std::span<const std::string> names) {
  if (!value.is_object()) return std::nullopt;
  if (const Json* const inner = Find(value, {"function"}); inner && inner->is_object()) {
    return CallOf(*inner, names);
  }
  const Json* const name = Find(value, {"name", "tool_name"});
  const Json* const arguments = Find(value, {"arguments", "parameters"});
  if (name == nullptr || !name->is_string() || arguments == nullptr || !arguments->is_object() ||
      std::ranges::find(names, name->get_ref<const std::string&>()) == names.end()) {
    return std::nullopt;
  }
  return ToolCall{.name = *name, .arguments = DumpJson(*arguments)};
}

// Adds the calls of a value, or of a list of them. False: it is something else.
bool AddCalls(std::string_view text, std::span<const std::string> names,
              std::vector<ToolCall>& calls) {
  Json value;
  try {
    value = ParseOrderedJson(text, "a call of a tool");
  } catch (const Error&) {
    return false;
  }
  const Json list = value.is_array() ? std::move(value) : Json::array({std::move(value)});
  for (const Json& one : list) {
    auto call = CallOf(one, names);
    if (!call) return false;
    calls.push_back(std::move(*call));
  }
  return !list.empty();
}

// One after the other, as a text has nothing besides. Empty: it does.
std::vector<ToolCall> CallsOf(std::string_view body, std::span<const std::string> names) {
  std::vector<ToolCall> calls;
  body = SkipBlanks(body);
  for (const std::string_view label : kLabels) {
    if (body.starts_with(label)) body = SkipBlanks(body.substr(label.size()));
  }
  while (!body.empty()) {
    if (body.front() != '{' && body.front() != '[') return {};
    const std::string_view value = FirstValue(body);
    if (value.empty() || !AddCalls(value, names, calls)) return {};
    body = SkipBlanks(body.substr(value.size()), " \t\r\n;,`");
  }
  return calls;
}

}  // namespace

void ToolCallReader::Release(size_t bytes, SaidWithCalls& said) {
  said.text.append(held_, 0, bytes);
  held_.erase(0, bytes);
  searched_ = 0;
}

void ToolCallReader::TakeCalls(std::string_view body, size_t bytes, SaidWithCalls& said) {
  auto calls = CallsOf(body, names_);
  if (calls.empty()) return Release(bytes, said);
  called_ = true;
  std::ranges::move(calls, std::back_inserter(said.calls));
  held_.erase(0, bytes);
  searched_ = 0;
}

// False: what comes next decides.
bool ToolCallReader::Step(SaidWithCalls& said) {
  const std::string_view held = held_;
  switch (state_) {
    case State::kFresh: {
      const std::string_view rest = SkipBlanks(held);
      const auto may_be = [&](std::string_view mark) { return mark.starts_with(rest); };
      const auto is = [&](std::string_view mark) { return rest.starts_with(mark); };
      if (std::ranges::any_of(kBeginnings, is)) {
        state_ = State::kWhole;
      } else if (!is(kTag) && (may_be(kTag) || std::ranges::any_of(kBeginnings, may_be))) {
        return false;
      } else {
        state_ = State::kText;
      }
      return true;
    }
    case State::kText: {
      const size_t tag = held.find(kTag), thoughts = held.find(kEndOfThoughts);
      if (tag == held.npos && thoughts == held.npos) {
        Release(held.size() - std::max(Begun(held, kTag), Begun(held, kEndOfThoughts)), said);
        return false;
      }
      const bool calls = tag < thoughts;
      const size_t before = calls ? tag : thoughts + kEndOfThoughts.size();
      state_ = calls ? State::kTagged : State::kFresh;
      // Blanks before a call belong to it, if it is one.
      tag_ = calls && SkipBlanks(held.substr(0, before)).empty() ? before : 0;
      if (tag_ == 0) Release(before, said);
      return true;
    }
    case State::kTagged: {
      const size_t end = held.find(kEndOfTag, searched_);
      if (end == held.npos) {
        searched_ = held.size() - std::min(held.size(), kEndOfTag.size());
        return false;
      }
      state_ = State::kFresh;
      const size_t begin = tag_ + kTag.size();
      TakeCalls(held.substr(begin, end - begin), end + kEndOfTag.size(), said);
      return true;
    }
    case State::kWhole:
      return false;
  }
  return false;
}

SaidWithCalls ToolCallReader::Push(std::string_view piece) {
  if (names_.empty()) return {.text = std::string(piece), .calls = {}};
  SaidWithCalls said;
  held_ += piece;
  while (Step(said)) continue;
  return said;
}

SaidWithCalls ToolCallReader::Finish() {
  SaidWithCalls said;
  const std::string_view held = held_;
  if (state_ == State::kTagged) {  // which the model's end cut off, or ended
    TakeCalls(held.substr(tag_ + kTag.size()), held.size(), said);
  } else if (state_ == State::kWhole) {
    TakeCalls(held, held.size(), said);
  } else if (!called_ || !SkipBlanks(held).empty()) {
    Release(held.size(), said);
  }
  return said;
}

}  // namespace godwit::chat
