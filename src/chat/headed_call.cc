#include "chat/headed_call.h"

#include <algorithm>

namespace godwit::chat {
namespace {

constexpr size_t kMaxHeadBytes = 256;
constexpr std::string_view kHeadBlanks = " \t\r\n", kJsonFence = "```json";

std::string_view Trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kHeadBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kHeadBlanks) + 1);
}

// The name in functions.NAME:0, where NAME stands alone, too.
std::string_view NameIn(std::string_view head) {
  constexpr std::string_view kSpace = "functions.", kDigits = "0123456789";
  if (head.starts_with(kSpace)) head.remove_prefix(kSpace.size());
  const size_t colon = head.rfind(':');
  const bool is_numbered =
      colon != head.npos && head.find_first_not_of(kDigits, colon + 1) == head.npos;
  return is_numbered ? head.substr(0, colon) : head;
}

}  // namespace

Reading HeadedCall::EndHead(char c) {
  head_.resize(head_.size() - separator_.size());
  const std::string_view head = Trimmed(head_);
  name_ = tools_->Has(head) ? head : NameIn(head);
  if (tools_->Has(name_)) {
    state_ = State::kBeforeArguments;
  } else if (head == "function") {
    state_ = State::kNameLine;
    name_.clear();
  } else {
    return EndBefore(c);
  }
  return Reading::kGoesOn;
}

Reading HeadedCall::Feed(char c, AnswerPieces& out) {
  switch (state_) {
    case State::kHead:
      head_ += c;
      if (head_.ends_with(separator_)) return EndHead(c);
      return head_.size() < kMaxHeadBytes ? Reading::kGoesOn : EndBefore(c);
    case State::kNameLine:
      if (c != '\n') {
        name_ += c;
        return name_.size() < kMaxHeadBytes ? Reading::kGoesOn : EndBefore(c);
      }
      name_ = std::string(Trimmed(name_));
      if (!tools_->Has(name_)) return EndBefore(c);
      state_ = State::kBeforeArguments;
      return Reading::kGoesOn;
    case State::kBeforeArguments:
      if (c != '{') {
        if (kHeadBlanks.find(c) != kHeadBlanks.npos) return Reading::kGoesOn;
        fence_ += c;
        return kJsonFence.starts_with(fence_) ? Reading::kGoesOn : EndBefore(c);
      }
      if (!fence_.empty() && fence_ != kJsonFence) return EndBefore(c);
      began_ = true;
      Add(out, AnswerPiece::Kind::kCall, name_);
      state_ = State::kArguments;
      [[fallthrough]];
    case State::kArguments: {
      std::string added;
      if (!json_.Feed(c, added)) return EndBefore(c);
      Add(out, AnswerPiece::Kind::kArguments, added);
      return json_.depth() > 0 ? Reading::kGoesOn : Reading::kDone;
    }
  }
  return Reading::kEnded;
}

}  // namespace godwit::chat
