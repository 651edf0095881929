#include "chat/tool_calls.h"

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <utility>

#include "chat/python_call.h"

namespace godwit::chat {
namespace {

using Kind = AnswerPiece::Kind;

constexpr std::string_view kBlankBytes = " \t\r\n";
constexpr std::string_view kFunction = "<function=", kCodeFence = "```json";
constexpr std::string_view kDsmlItem = "<｜DSML｜invoke name=\"";

bool AllBlank(std::string_view text) {
  return text.find_first_not_of(kBlankBytes) == std::string_view::npos;
}

}  // namespace

// A beginning of calls.
struct ToolCallReader::Opening {
  std::string_view mark;
  std::string_view end;            // the mark behind the calls; empty: none is needed
  bool is_whole = false;           // only at the beginning, and if nothing else follows
  bool is_call = false;            // the mark belongs to the call itself
  bool has_arg_keys = false;       // a name may follow, with its parameters in tags,
  bool has_names = false;          // or in JSON
  std::string_view item = {};      // the mark before each call
  std::string_view item_end = {};  // the mark behind each call, which may be missing
  // One of these, or none, says how a call behind `item` is written.
  const ParameterMarks* parameters = nullptr;
  std::string_view separator = {};  // of HeadedCall
  bool is_gemma = false;
  bool by_key = false;  // the objects of JSON have names as keys
};

const ToolCallReader::Opening ToolCallReader::kOpenings[] = {
    {.mark = "<tool_call>", .end = "</tool_call>", .has_arg_keys = true},
    {.mark = kFunction, .end = "</tool_call>", .is_call = true},
    {.mark = "<tool_calls>",
     .end = "</tool_calls>",
     .has_arg_keys = true,
     .item = "<tool_call>",
     .item_end = "</tool_call>"},
    {.mark = "<seed:tool_call>",
     .end = "</seed:tool_call>",
     .item = kFunction,
     .parameters = &kSeedMarks},
    {.mark = "<minimax:tool_call>",
     .end = "</minimax:tool_call>",
     .item = "<invoke name=\"",
     .parameters = &kInvokeMarks},
    {.mark = "<｜DSML｜function_calls>",
     .end = "</｜DSML｜function_calls>",
     .item = kDsmlItem,
     .parameters = &kDsmlMarks},
    {.mark = "<｜DSML｜tool_calls>",
     .end = "</｜DSML｜tool_calls>",
     .item = kDsmlItem,
     .parameters = &kDsmlMarks},
    {.mark = "<|tool_calls_section_begin|>",
     .end = "<|tool_calls_section_end|>",
     .item = "<|tool_call_begin|>",
     .item_end = "<|tool_call_end|>",
     .separator = "<|tool_call_argument_begin|>"},
    {.mark = "<｜tool▁calls▁begin｜>",
     .end = "<｜tool▁calls▁end｜>",
     .item = "<｜tool▁call▁begin｜>",
     .item_end = "<｜tool▁call▁end｜>",
     .separator = "<｜tool▁sep｜>"},
    {.mark = "<|tool_call>", .end = "<tool_call|>", .item = "call:", .is_gemma = true},
    {.mark = "<TOOLCALL>", .end = "</TOOLCALL>"},
    {.mark = "<|START_ACTION|>", .end = "<|END_ACTION|>"},
    {.mark = "<|tools_prefix|>", .end = "<|tools_suffix|>", .by_key = true},
    {.mark = "<|tool_call_start|>", .end = "<|tool_call_end|>"},
    {.mark = "<|tool_call|>", .end = "<|/tool_call|>"},
    {.mark = "[TOOL_CALLS]", .end = "", .has_names = true},
    {.mark = "<|python_tag|>", .end = ""},
    {.mark = "Action:", .end = "", .is_whole = true},
    {.mark = kCodeFence, .end = "", .is_whole = true},
    {.mark = "```", .end = "", .is_whole = true},
    {.mark = "{", .end = "", .is_whole = true, .is_call = true},
    {.mark = "[", .end = "", .is_whole = true, .is_call = true},
};

const std::vector<std::string>& ToolCallReader::Marks() {
  static const std::vector<std::string> marks = [] {
    std::vector<std::string> all = {"[ARGS]",      "[CALL_ID]",    "<arg_key>",  "</arg_key>",
                                    "<arg_value>", "</arg_value>", "<tool_sep>", "｜DSML｜"};
    all.emplace_back(GemmaCall::kTextMark);
    for (const Opening& opening : kOpenings) {
      if (opening.is_whole || opening.is_call) continue;
      for (const std::string_view mark :
           {opening.mark, opening.end, opening.item, opening.item_end, opening.separator}) {
        const bool is_new = std::ranges::find(all, mark) == all.end();
        if (!mark.empty() && is_new) all.emplace_back(mark);
      }
    }
    return all;
  }();
  return marks;
}

void ToolCallReader::Push(std::string_view piece, AnswerPieces& out) {
  if (tools_->list.empty()) return Add(out, Kind::kText, piece);
  for (const char c : piece) Feed(c, out);
}

void ToolCallReader::Feed(char c, AnswerPieces& out) {
  if (state_ == State::kCall) return FeedCall(c, out);
  held_ += c;
  if (state_ == State::kBegin) {
    FeedBegin(out);
  } else if (state_ == State::kBehind) {
    FeedBehind(out);
  } else {
    Settle(out);
  }
}

void ToolCallReader::Rescan(const std::string& text, AnswerPieces& out) {
  for (const char c : text) Feed(c, out);
}

// Looks in the text for a mark that has come or may come.
void ToolCallReader::Settle(AnswerPieces& out) {
  if (state_ == State::kFresh && AllBlank(held_)) {
    blanks_ += std::exchange(held_, {});
    return;
  }
  const Opening* found = nullptr;
  for (const Opening& opening : kOpenings) {
    if (opening.is_whole && state_ != State::kFresh) continue;
    if (opening.mark.size() > held_.size() && opening.mark.starts_with(held_)) return;
    const bool is_longer = found == nullptr || opening.mark.size() > found->mark.size();
    if (is_longer && held_.starts_with(opening.mark)) found = &opening;
  }
  const std::string held = std::exchange(held_, {});
  if (found == nullptr) {
    Add(out, Kind::kText, std::exchange(blanks_, {}));
    Add(out, Kind::kText, std::string_view(held).substr(0, 1));
    state_ = State::kText;
    return Rescan(held.substr(1), out);
  }
  Open(*found);
  const size_t taken = found->is_call ? 0 : found->mark.size();
  raw_ = held.substr(0, taken);
  Rescan(held.substr(taken), out);
}

void ToolCallReader::Open(const Opening& opening) {
  opening_ = &opening;
  state_ = State::kBegin;
  in_list_ = in_item_ = false;
  is_whole_ = opening.is_whole && !only_calls_;
}

template <typename Call>
void ToolCallReader::BeginCall(Call call, std::string_view first, AnswerPieces& out) {
  held_.clear();
  call_ = std::move(call);
  state_ = State::kCall;
  for (const char c : first) FeedCall(c, out);
}

bool ToolCallReader::BeginItem(AnswerPieces& out) {
  const std::string first = held_;
  if (opening_->parameters != nullptr) {
    BeginCall(ParameterCall(*tools_, *opening_->parameters), first, out);
  } else if (!opening_->separator.empty()) {
    BeginCall(HeadedCall(*tools_, opening_->separator), first, out);
  } else if (opening_->is_gemma) {
    BeginCall(GemmaCall(*tools_), first, out);
  } else {
    return false;
  }
  return true;
}

void ToolCallReader::FeedBegin(AnswerPieces& out) {
  const char c = held_.front();
  const auto pass = [&] { raw_ += std::exchange(held_, {}); };
  if (held_.size() == 1 && AllBlank(held_)) return pass();
  if (in_item_ && BeginItem(out)) return;
  if (!in_item_ && !opening_->item.empty() && opening_->item.starts_with(held_)) {
    in_item_ = held_ == opening_->item;
    if (in_item_) pass();
    return;
  }
  if (held_ == "{") return BeginCall(JsonCall(*tools_, opening_->by_key), "{", out);
  if (held_ == "[" && !in_list_) {
    in_list_ = true;
    return pass();
  }
  if (kFunction.starts_with(held_) && opening_->mark != "{") {
    if (held_ != kFunction) return;
    pass();
    return BeginCall(ParameterCall(*tools_, kFunctionMarks), "", out);
  }
  if (kCodeFence.starts_with(held_) && !in_list_) {
    if (held_ == kCodeFence) pass();
    return;
  }
  if (held_.size() == 1 && IsNameByte(c)) {
    const std::string first = held_;
    if (in_list_) return BeginCall(PythonCall(*tools_), first, out);
    if (opening_->has_names) return BeginCall(NamedCall(*tools_), first, out);
    if (opening_->has_arg_keys) {
      return BeginCall(ParameterCall(*tools_, kArgKeyMarks), first, out);
    }
  }
  Fail(std::exchange(held_, {}), out);
}

void ToolCallReader::FeedCall(char c, AnswerPieces& out) {
  raw_ += c;
  bool began = false;
  std::string rest;
  const auto feed = [&](auto& call) {
    if constexpr (std::is_same_v<std::decay_t<decltype(call)>, std::monostate>) {
      return Reading::kEnded;
    } else {
      const Reading reading = call.Feed(c, Calls(out));
      began = call.began();
      rest = call.rest();
      return reading;
    }
  };
  const Reading reading = std::visit(feed, call_);
  if (began && !is_whole_) {
    raw_.clear();
    blanks_.clear();
    called_ = true;
  }
  if (reading == Reading::kGoesOn) return;
  // A call that ends before it is certain to be one is no call.
  if (!began || (is_whole_ && reading == Reading::kEnded)) {
    if (!raw_.empty()) raw_.resize(raw_.size() - rest.size());
    return Fail(std::move(rest), out);
  }
  state_ = State::kBehind;
  Rescan(rest, out);
}

void ToolCallReader::FeedBehind(AnswerPieces& out) {
  constexpr std::string_view kParting = " \t\r\n,;";
  const char c = held_.front();
  const auto pass = [&] { raw_ += std::exchange(held_, {}); };
  if (held_.size() == 1) {
    const bool may_be_fenced = is_whole_ || !opening_->item_end.empty();
    if (kParting.find(c) != kParting.npos || (c == '`' && may_be_fenced)) return pass();
    if (c == ']' && in_list_) {
      in_list_ = false;
      return pass();
    }
    in_item_ = false;
    if (c == '{' || (c == '[' && !in_list_ && opening_->mark != "[TOOL_CALLS]") ||
        (in_list_ && IsNameByte(c))) {
      state_ = State::kBegin;
      return FeedBegin(out);
    }
  }
  if (held_ == opening_->end) {
    held_.clear();
    raw_.clear();
    return EndBlock(out);
  }
  if (held_ == opening_->item_end) {
    held_.clear();
    raw_.clear();
    return;
  }
  if (opening_->end.starts_with(held_) || opening_->item_end.starts_with(held_)) return;
  if (opening_->item.starts_with(held_) ||
      (opening_->has_arg_keys && kFunction.starts_with(held_))) {
    state_ = State::kBegin;
    return FeedBegin(out);
  }
  if (is_whole_) return Fail(std::exchange(held_, {}), out);
  EndBlock(out);
}

void ToolCallReader::EndBlock(AnswerPieces& out) {
  state_ = State::kFresh;
  const std::string rest = std::exchange(raw_, {}) + std::exchange(held_, {});
  Rescan(rest, out);
}

void ToolCallReader::Fail(std::string rest, AnswerPieces& out) {
  Add(out, Kind::kText, std::exchange(blanks_, {}));
  Add(out, Kind::kText, std::exchange(raw_, {}));
  pending_.clear();
  held_.clear();
  state_ = State::kText;
  Rescan(rest, out);
}

void ToolCallReader::Finish(AnswerPieces& out) {
  switch (state_) {
    case State::kFresh:
    case State::kText:
      if (called_ && held_.empty()) blanks_.clear();
      break;
    case State::kBegin:
      break;
    case State::kCall:
      if (is_whole_ || !raw_.empty()) break;
      std::visit(
          [&](auto& call) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(call)>, std::monostate>) {
              call.Finish(out);
            }
          },
          call_);
      break;
    case State::kBehind:
      if (is_whole_ && in_list_) break;
      std::ranges::move(std::exchange(pending_, {}), std::back_inserter(out));
      blanks_.clear();
      raw_.clear();
      held_.clear();
      break;
  }
  for (std::string* const text : {&blanks_, &raw_, &held_}) {
    Add(out, Kind::kText, std::exchange(*text, {}));
  }
}

}  // namespace godwit::chat
