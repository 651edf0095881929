// ThoughtWatch: the place of an output's thought and of its answer, token by token.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/cancel.h"
#include "godwit/engine.h"
#include "text/tokenizer.h"

namespace godwit {

class ThoughtWatch {
 public:
  // cancel: null, or outlives this.
  ThoughtWatch(ThoughtMarks marks, const Tokenizer& tokenizer, const CancelToken* cancel);

  void Push(int32_t token);

  // The tokens of the thought with its marks, so far.
  int64_t tokens() const { return thought_tokens_; }
  // Whether the next token is one of the answer.
  bool in_answer() const { return place_ == Place::kAnswer; }

 private:
  enum class Place { kBefore, kThought, kBetween, kAnswer };

  bool Step();
  // Moves behind `mark`, if the text has it. Otherwise only the text's end stays, which may be the
  // beginning of a mark.
  bool Pass(const std::string& mark);
  Place BehindThought() const {
    return marks_.before_answer.empty() ? Place::kAnswer : Place::kBetween;
  }

  ThoughtMarks marks_;
  std::unique_ptr<StreamDecoder> stream_;
  Place place_;
  std::string text_;    // text without a mark so far
  size_t passed_ = 0;   // number of marks_.before_answer passed
  int64_t tokens_ = 0;  // in all
  int64_t thought_tokens_ = 0;
};

}  // namespace godwit
