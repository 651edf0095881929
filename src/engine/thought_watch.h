// Where an output thinks, and where its answer begins, told token by token.
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
  // `cancel` may be null, or outlives this.
  ThoughtWatch(ThoughtMarks marks, const Tokenizer& tokenizer, const CancelToken* cancel);

  void Push(int32_t token);

  // Of the thought with its marks, so far.
  int64_t tokens() const { return thought_tokens_; }
  // Whether the next token is one of the answer.
  bool in_answer() const { return place_ == Place::kAnswer; }

 private:
  enum class Place { kBefore, kThought, kBetween, kAnswer };

  bool Step();
  // Behind `mark`, if the text has it: else only its end, which may be the beginning of one, stays.
  bool Pass(const std::string& mark);
  Place BehindThought() const {
    return marks_.before_answer.empty() ? Place::kAnswer : Place::kBetween;
  }

  ThoughtMarks marks_;
  std::unique_ptr<StreamDecoder> stream_;
  Place place_;
  std::string text_;    // that no mark was found in
  size_t passed_ = 0;   // of marks_.before_answer
  int64_t tokens_ = 0;  // in all
  int64_t thought_tokens_ = 0;
};

}  // namespace godwit
