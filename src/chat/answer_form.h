// AnswerForm: the marks by which a model's answer is read. The end of its prompt shows them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "godwit/engine.h"

namespace godwit::chat {

struct AnswerForm {
  ThoughtMarks thought;  // no marks: all is the answer
  // The words that belong to the mark before a thought; empty: none (Gemma 4: "thought\n").
  std::string thought_title = {};
  // Whether the answer consists of messages whose headers name their receivers, as gpt-oss writes
  // (Harmony): <|channel|>analysis<|message|>...<|end|>.
  bool is_channels = false;
  // The marks around the answer itself, behind the thought or at the beginning; empty: none
  // (Hunyuan: <answer> and </answer>, Granite 3.3: <response> and </response>).
  std::string answer_begin = {}, answer_end = {};
};

// The form of the answer to a chat's prompt, as the template wrote it. is_token: whether a text is
// one token of the model; null: it has no such tokens. The usual marks of thoughts
// are <think> and </think>. A vocabulary may have others: [THINK] (Magistral), <seed:think>
// (Seed-OSS), <|channel> (Gemma 4), <|inner_prefix|> (Apertus), <|START_THINKING|> (Command R7B).
//
// chat_template: the source of the template, or empty. Marks around answers are none that it does
// not speak of, since a user may ask any model to write them.
AnswerForm FormOf(std::string_view prompt,
                  const std::function<bool(std::string_view text)>& is_token,
                  std::string_view chat_template = {});

// The special tokens by which an answer of this form is read.
std::vector<std::string> MarksOf(const AnswerForm& form, bool with_tools);

}  // namespace godwit::chat
