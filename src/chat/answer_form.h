// AnswerForm: the marks by which a model's answer is read. The end of its prompt shows them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "godwit/engine.h"

namespace godwit::chat {

struct AnswerForm {
  ThoughtMarks thought;  // no marks: all is the answer
  // Whether the answer consists of messages whose headers name their receivers, as gpt-oss writes
  // (Harmony): <|channel|>analysis<|message|>...<|end|>.
  bool is_channels = false;
};

// The form of the answer to a chat's prompt, as the template wrote it. bracketed: the model's
// special tokens are [THINK] and [/THINK] (Magistral).
AnswerForm FormOf(std::string_view prompt, bool bracketed);

// The special tokens by which an answer of this form is read.
std::vector<std::string> MarksOf(const AnswerForm& form, bool with_tools);

}  // namespace godwit::chat
