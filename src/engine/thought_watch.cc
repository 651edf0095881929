#include "engine/thought_watch.h"

#include <algorithm>
#include <utility>

namespace godwit {

ThoughtWatch::ThoughtWatch(ThoughtMarks marks, const Tokenizer& tokenizer,
                           const CancelToken* cancel)
    : marks_(std::move(marks)),
      stream_(tokenizer.NewStream(/*skip_special_tokens=*/false, cancel)),
      place_(marks_.open ? Place::kThought : Place::kBefore) {}

void ThoughtWatch::Push(int32_t token) {
  ++tokens_;
  if (in_answer()) return;
  text_ += stream_->Push(token);
  const bool thinks = place_ == Place::kThought;
  while (Step()) continue;
  if (thinks || place_ == Place::kThought) thought_tokens_ = tokens_;
}

bool ThoughtWatch::Pass(const std::string& mark) {
  const size_t found = text_.find(mark);
  if (found != text_.npos) {
    text_.erase(0, found + mark.size());
    return true;
  }
  text_.erase(0, text_.size() - std::min(text_.size(), mark.size() - 1));
  return false;
}

// False: the next token decides.
bool ThoughtWatch::Step() {
  switch (place_) {
    case Place::kBefore: {
      const size_t begin = std::min(text_.find_first_not_of(" \t\r\n"), text_.size());
      const std::string_view said = std::string_view(text_).substr(begin);
      if (said.starts_with(marks_.begin)) {
        place_ = Place::kThought;
        text_.erase(0, begin + marks_.begin.size());
      } else if (std::string_view(marks_.begin).starts_with(said)) {
        return false;
      } else {
        place_ = BehindThought();
      }
      return true;
    }
    case Place::kThought:
      if (!Pass(marks_.end)) return false;
      place_ = BehindThought();
      return true;
    case Place::kBetween:
      if (!Pass(marks_.before_answer[passed_])) return false;
      if (++passed_ == marks_.before_answer.size()) place_ = Place::kAnswer;
      return true;
    case Place::kAnswer:
      return false;
  }
  return false;
}

}  // namespace godwit
