#include "chat/answer_form.h"

#include <algorithm>
#include <iterator>

#include "chat/tool_calls.h"

namespace godwit::chat {

AnswerForm FormOf(std::string_view prompt, bool bracketed) {
  prompt = prompt.substr(0, prompt.find_last_not_of(" \t\r\n") + 1);
  if (prompt.ends_with("<|start|>assistant")) {
    return {.thought = {.begin = "<|channel|>analysis<|message|>",
                        .end = "<|end|>",
                        .before_answer = {"<|channel|>final", "<|message|>"}},
            .is_channels = true};
  }
  AnswerForm form;
  form.thought.begin = bracketed ? "[THINK]" : "<think>";
  form.thought.end = bracketed ? "[/THINK]" : "</think>";
  form.thought.open = prompt.ends_with(form.thought.begin);
  return form;
}

std::vector<std::string> MarksOf(const AnswerForm& form, bool with_tools) {
  if (form.is_channels) {
    return {"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>"};
  }
  if (form.thought.end.empty()) return {};
  std::vector<std::string> marks = {form.thought.begin, form.thought.end};
  if (with_tools) std::ranges::copy(ToolCallReader::Marks(), std::back_inserter(marks));
  return marks;
}

}  // namespace godwit::chat
