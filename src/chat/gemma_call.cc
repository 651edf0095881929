#include "chat/gemma_call.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "chat/python_call.h"

namespace godwit::chat {
namespace {

using Kind = AnswerPiece::Kind;

constexpr std::string_view kGemmaBlanks = " \t\r\n", kStructure = "{}[],:";
constexpr size_t kMaxOpen = 100;  // deeper than any arguments

// The JSON of a text without the quotation marks around it.
std::string EscapedByte(char c) {
  const std::string quoted = DumpJson(nlohmann::ordered_json(std::string(1, c)));
  return quoted.substr(1, quoted.size() - 2);
}

// Adds a byte of a text to the arguments.
void AddByte(char c, AnswerPieces& out) {
  const auto byte = static_cast<unsigned char>(c);
  const bool is_plain = byte >= 0x20 && c != '"' && c != '\\';
  Add(out, Kind::kArguments, is_plain ? std::string(1, c) : EscapedByte(c));
}

}  // namespace

Reading GemmaCall::Feed(char c, AnswerPieces& out) {
  switch (state_) {
    case State::kName:
      if (c == '{' && tools_->Has(name_)) {
        began_ = true;
        Add(out, Kind::kCall, name_);
        state_ = State::kBetween;
        return FeedBetween(c, out);
      }
      if (!IsNameByte(c)) return EndBefore(c);
      name_ += c;
      return Reading::kGoesOn;
    case State::kWord:
      if (kStructure.find(c) == kStructure.npos) {
        word_ += c;
        return Reading::kGoesOn;
      }
      EndWord(out);
      [[fallthrough]];
    case State::kBetween:
      return FeedBetween(c, out);
    case State::kText:
      held_ += c;
      FeedText(out);
      // The byte behind a text belongs to the structure.
      return state_ == State::kBetween ? FeedBetween(c, out) : Reading::kGoesOn;
    case State::kQuoted:
      if (static_cast<unsigned char>(c) < 0x20) {
        escaped_ = false;
        AddByte(c, out);
        return Reading::kGoesOn;
      }
      Add(out, Kind::kArguments, std::string_view(&c, 1));
      if (c == '"' && !escaped_) state_ = State::kBetween;
      escaped_ = c == '\\' && !escaped_;
      return Reading::kGoesOn;
  }
  return Reading::kEnded;
}

Reading GemmaCall::FeedBetween(char c, AnswerPieces& out) {
  if (kGemmaBlanks.find(c) != kGemmaBlanks.npos && held_.empty()) return Reading::kGoesOn;
  if (kStructure.find(c) == kStructure.npos) {
    if (has_value_) return EndBefore(c);
    held_ += c;
    if (held_ == kTextMark || held_ == "\"") {
      state_ = held_ == kTextMark ? State::kText : State::kQuoted;
      held_.clear();
      Add(out, Kind::kArguments, "\"");
      has_value_ = true;
    } else if (!kTextMark.starts_with(held_)) {
      word_ = std::exchange(held_, {});
      state_ = State::kWord;
    }
    return Reading::kGoesOn;
  }
  if (!held_.empty()) {  // a word such as "<"
    word_ = std::exchange(held_, {});
    EndWord(out);
  }
  const bool opens = c == '{' || c == '[', closes = c == '}' || c == ']';
  if (opens ? has_value_ || open_.size() == kMaxOpen || IsKey() : open_.empty()) {
    return EndBefore(c);
  }
  if (closes && open_.back() != c) return EndBefore(c);
  const bool needs_value = c == ':' || c == ',' || before_value_ == ':' || before_value_ == ',';
  if (!opens && needs_value && !has_value_) return EndBefore(c);
  // A key has a colon behind it, and nothing else has.
  if (!opens && has_value_ && IsKey() != (c == ':')) return EndBefore(c);
  if (opens) open_ += c == '{' ? '}' : ']';
  if (closes) open_.pop_back();
  before_value_ = c;
  has_value_ = closes;
  Add(out, Kind::kArguments, std::string_view(&c, 1));
  state_ = State::kBetween;
  return open_.empty() ? Reading::kDone : Reading::kGoesOn;
}

// Reads a text up to its mark and what follows it, which must go on with the call.
void GemmaCall::FeedText(AnswerPieces& out) {
  constexpr size_t kMaxBlanks = 64;
  while (!held_.empty()) {
    const std::string_view held = held_;
    if (held.size() <= kTextMark.size() && kTextMark.starts_with(held)) return;
    if (held.starts_with(kTextMark)) {
      const std::string_view behind = held.substr(kTextMark.size());
      const size_t at = behind.find_first_not_of(kGemmaBlanks);
      if (at == behind.npos && behind.size() <= kMaxBlanks) return;
      constexpr std::string_view kGoesOnWith = ",:}]";
      if (at != behind.npos && kGoesOnWith.find(behind[at]) != kGoesOnWith.npos) {
        Add(out, Kind::kArguments, "\"");
        held_.clear();
        state_ = State::kBetween;
        return;
      }
    }
    AddByte(held_.front(), out);
    held_.erase(0, 1);
  }
}

void GemmaCall::EndWord(AnswerPieces& out) {
  word_.resize(word_.find_last_not_of(kGemmaBlanks) + 1);
  const std::string word = std::exchange(word_, {});
  std::optional<std::string> literal;
  if (!IsKey()) literal = ParsePythonLiteral(word);
  Add(out, Kind::kArguments, literal ? *literal : DumpJson(nlohmann::ordered_json(word)));
  has_value_ = true;
}

void GemmaCall::Finish(AnswerPieces& out) {
  if (state_ != State::kText) return;
  if (held_.starts_with(kTextMark)) {
    Add(out, Kind::kArguments, "\"");
  } else {
    for (const char c : held_) AddByte(c, out);
  }
}

}  // namespace godwit::chat
