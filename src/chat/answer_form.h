// How a model writes its answer down, beside the words themselves: told by the end of its prompt.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "godwit/engine.h"

namespace godwit::chat {

struct AnswerForm {
  ThoughtMarks thought;  // none: all is the answer
  // Messages with headers that say for whom they are: <|channel|>analysis<|message|>...<|end|>, of
  // gpt-oss (Harmony).
  bool is_channels = false;
};

// Of a chat whose prompt the template has written. bracketed: the model's special tokens are
// [THINK] and [/THINK] (Magistral).
AnswerForm FormOf(std::string_view prompt, bool bracketed);

// Special tokens that an answer of this form is read by.
std::vector<std::string> MarksOf(const AnswerForm& form, bool with_tools);

}  // namespace godwit::chat
