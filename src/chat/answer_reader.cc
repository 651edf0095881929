#include "chat/answer_reader.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace godwit::chat {
namespace {

using Kind = AnswerPiece::Kind;

constexpr std::string_view kMessageMark = "<|message|>", kChannelMark = "<|channel|>";
constexpr std::array<std::string_view, 4> kMessageEnds = {"<|end|>", "<|call|>", "<|return|>",
                                                          "<|start|>"};
constexpr size_t kMaxHeaderBytes = 512;
constexpr std::string_view kBlanks = " \t\r\n";

// The word behind `mark`. Empty: there is none.
std::string_view WordBehind(std::string_view header, std::string_view mark) {
  const size_t found = header.find(mark);
  if (found == header.npos) return {};
  header.remove_prefix(found + mark.size());
  return header.substr(0, header.find_first_of(" \t\r\n<"));
}

}  // namespace

AnswerReader::AnswerReader(const CompletionRequest& request, const AnswerForm& form)
    : tools_(request.tools),
      marks_(form.thought),
      answer_begin_(form.answer_begin),
      answer_end_(form.answer_end),
      title_(form.thought_title),
      is_channels_(form.is_channels),
      state_(is_channels_         ? State::kHeader
             : marks_.end.empty() ? State::kAnswer
                                  : State::kBefore),
      // A JSON schema and tools exclude each other: with tools the schema is that of calls.
      calls_(request.tools, /*only_calls=*/!request.generate.json_schema.empty()) {
  if (marks_.open && !is_channels_) state_ = State::kThought;
}

AnswerPieces AnswerReader::Push(std::string_view text) {
  AnswerPieces out;
  if (state_ == State::kAnswer) {
    calls_.Push(text, out);
  } else {
    for (const char c : text) Feed(c, out);
  }
  return out;
}

void AnswerReader::Feed(char c, AnswerPieces& out) {
  switch (state_) {
    case State::kBefore: {
      held_ += c;
      const size_t begin = std::min(held_.find_first_not_of(kBlanks), held_.size());
      const std::string_view said = std::string_view(held_).substr(begin);
      if (said == marks_.begin) {
        held_.clear();
        state_ = State::kThought;
      } else if (!answer_begin_.empty() && said == answer_begin_) {
        held_.clear();
        state_ = State::kMarked;
      } else if (!std::string_view(marks_.begin).starts_with(said) &&
                 !std::string_view(answer_begin_).starts_with(said)) {
        state_ = State::kAnswer;
        calls_.Push(std::exchange(held_, {}), out);
      }
      return;
    }
    case State::kThought:
      return FeedThought(c, out);
    case State::kBehind:
      return FeedBehind(c, out);
    case State::kMarked:
      return FeedMarked(c, out);
    case State::kAnswer:
      return calls_.Push({&c, 1}, out);
    case State::kHeader:
      return FeedHeader(c, out);
    case State::kMessage:
      return FeedMessage(c, out);
  }
}

void AnswerReader::AddThought(std::string_view text, AnswerPieces& out) {
  for (const char c : text) {
    if (c == '\n') {
      if (thinks_) breaks_ += c;
      continue;
    }
    thinks_ = true;
    Add(out, Kind::kThought, std::exchange(breaks_, {}));
    Add(out, Kind::kThought, {&c, 1});
  }
}

void AnswerReader::FeedThought(char c, AnswerPieces& out) {
  held_ += c;
  while (!held_.empty()) {
    if (held_ == marks_.end) {
      held_.clear();
      breaks_.clear();
      state_ = State::kBehind;
    } else if (!thinks_ && held_ == marks_.begin) {
      held_.clear();  // the prompt has it already
    } else if (held_ == title_) {
      held_.clear();
      title_.clear();
    } else if (marks_.end.starts_with(held_) || (!thinks_ && marks_.begin.starts_with(held_)) ||
               title_.starts_with(held_)) {
      return;
    } else {
      title_.clear();
      AddThought(std::string_view(held_).substr(0, 1), out);
      held_.erase(0, 1);
    }
  }
}

void AnswerReader::FeedBehind(char c, AnswerPieces& out) {
  if (held_.empty() && (c == '\n' || c == '\r')) return;
  held_ += c;
  if (!answer_begin_.empty() && held_ == answer_begin_) {
    held_.clear();
    state_ = State::kMarked;
  } else if (!std::string_view(answer_begin_).starts_with(held_)) {
    state_ = State::kAnswer;
    calls_.Push(std::exchange(held_, {}), out);
  }
}

// An end mark counts where nothing follows but blanks, or calls: an answer about such marks may
// have others. Line breaks belong to the marks.
void AnswerReader::FeedMarked(char c, AnswerPieces& out) {
  held_ += c;
  while (!held_.empty()) {
    const std::string_view held = held_;
    const size_t begin = std::min(held.find_first_not_of("\n\r"), held.size());
    const std::string_view mark = held.substr(begin);
    if (begin == held.size() || std::string_view(answer_end_).starts_with(mark)) return;
    if (mark.starts_with(answer_end_)) {
      std::string_view behind = mark.substr(answer_end_.size());
      behind.remove_prefix(std::min(behind.find_first_not_of(kBlanks), behind.size()));
      const std::vector<std::string>& calls = ToolCallReader::Marks();
      if (behind.empty() || std::ranges::any_of(calls, [&](const std::string& call) {
            return call.size() > behind.size() && call.starts_with(behind);
          })) {
        return;
      }
      if (std::ranges::any_of(calls,
                              [&](const std::string& call) { return behind.starts_with(call); })) {
        state_ = State::kAnswer;
        calls_.Push(std::string(behind), out);
        return held_.clear();
      }
    }
    // Line breaks behind the first mark are no part of the answer; others are, as more follows.
    const size_t text = says_ ? 0 : begin;
    says_ = true;
    calls_.Push(held.substr(text, begin + 1 - text), out);
    held_.erase(0, begin + 1);
  }
}

void AnswerReader::FeedHeader(char c, AnswerPieces& out) {
  held_ += c;
  if (held_.ends_with(kMessageMark)) return BeginMessage(out);
  // Words of no header come from a model that writes no headers.
  const std::string_view begins = " to=", mark = "<|";
  const std::string_view said = held_;
  const bool may_be = begins.starts_with(said.substr(0, begins.size())) ||
                      mark.starts_with(said.substr(0, mark.size()));
  if (may_be && held_.size() < kMaxHeaderBytes) return;
  message_ = Message::kText;
  state_ = State::kMessage;
  for (const char held : std::exchange(held_, {})) FeedMessage(held, out);
}

void AnswerReader::BeginMessage(AnswerPieces& out) {
  const std::string header = std::exchange(held_, {});
  const std::string_view channel = WordBehind(header, kChannelMark);
  std::string_view called = WordBehind(header, "to=");
  constexpr std::string_view kFunctions = "functions.";
  if (called.starts_with(kFunctions)) called.remove_prefix(kFunctions.size());
  state_ = State::kMessage;
  message_ = channel == "analysis" ? Message::kThought : Message::kText;
  if (!called.empty() && tools_.Has(called)) {
    message_ = Message::kCall;
    json_ = JsonText();
    has_arguments_ = false;
    is_json_ = true;
    Add(out, Kind::kCall, called);
  } else if (message_ == Message::kThought && thinks_) {
    breaks_ = "\n";
  }
}

void AnswerReader::FeedMessage(char c, AnswerPieces& out) {
  held_ += c;
  while (!held_.empty()) {
    const auto is = [&](std::string_view end) { return end == held_; };
    const auto may_be = [&](std::string_view end) { return end.starts_with(held_); };
    // A mark within a string of arguments is a part of it.
    const bool in_text = message_ == Message::kCall && is_json_ && json_.in_text();
    if (!in_text && std::ranges::any_of(kMessageEnds, is)) {
      EndMessage(out);
      if (held_ != kMessageEnds.back()) held_.clear();  // the next header begins with it
      return;
    }
    if (!in_text && std::ranges::any_of(kMessageEnds, may_be)) return;
    AddText(std::string_view(held_).substr(0, 1), out);
    held_.erase(0, 1);
  }
}

void AnswerReader::AddText(std::string_view text, AnswerPieces& out) {
  switch (message_) {
    case Message::kThought:
      return AddThought(text, out);
    case Message::kText:
      return calls_.Push(text, out);
    case Message::kCall: {
      std::string added;
      for (const char c : text) {
        is_json_ = is_json_ && json_.Feed(c, added);
        if (!is_json_) added += c;
      }
      has_arguments_ = has_arguments_ || !added.empty();
      return Add(out, Kind::kArguments, added);
    }
  }
}

void AnswerReader::EndMessage(AnswerPieces& out) {
  if (message_ == Message::kCall && !has_arguments_) Add(out, Kind::kArguments, "{}");
  breaks_.clear();
  state_ = State::kHeader;
}

// The end mark that was held back ends the answer. Without it the answer was cut off, and may end
// with a part of the mark.
void AnswerReader::FinishMarked(AnswerPieces& out) {
  const std::string held = std::exchange(held_, {});
  const size_t begin = std::min(held.find_first_not_of("\n\r"), held.size());
  std::string_view rest = std::string_view(held).substr(begin);
  if (!rest.starts_with(answer_end_)) {
    return calls_.Push(std::string_view(held).substr(says_ ? 0 : begin), out);
  }
  rest.remove_prefix(answer_end_.size());  // the beginning of a call may follow
  rest.remove_prefix(std::min(rest.find_first_not_of(kBlanks), rest.size()));
  calls_.Push(rest, out);
}

AnswerPieces AnswerReader::Finish() {
  AnswerPieces out;
  switch (state_) {
    case State::kBefore:
      calls_.Push(std::exchange(held_, {}), out);
      break;
    case State::kThought:
      AddThought(std::exchange(held_, {}), out);
      break;
    case State::kMessage:
      AddText(std::exchange(held_, {}), out);
      EndMessage(out);
      break;
    case State::kMarked:
      FinishMarked(out);
      break;
    case State::kBehind:
      calls_.Push(std::exchange(held_, {}), out);
      break;
    case State::kHeader:
    case State::kAnswer:
      break;
  }
  calls_.Finish(out);
  return out;
}

WholeAnswer ReadAnswer(const CompletionRequest& request, const AnswerForm& form,
                       std::string_view text) {
  AnswerReader reader(request, form);
  AnswerPieces pieces = reader.Push(text);
  std::ranges::move(reader.Finish(), std::back_inserter(pieces));
  return Join(pieces);
}

}  // namespace godwit::chat
