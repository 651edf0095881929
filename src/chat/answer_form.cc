#include "chat/answer_form.h"

#include <algorithm>
#include <iterator>

#include "chat/tool_calls.h"

namespace godwit::chat {
namespace {

constexpr std::string_view kFormBlanks = " \t\r\n";

struct ThoughtSpelling {
  std::string_view begin, end;
  std::string_view title = {};
};
constexpr ThoughtSpelling kSpellings[] = {
    {.begin = "[THINK]", .end = "[/THINK]"},
    {.begin = "<seed:think>", .end = "</seed:think>"},
    {.begin = "<|channel>", .end = "<channel|>", .title = "thought\n"},
    {.begin = "<|inner_prefix|>", .end = "<|inner_suffix|>"},
    {.begin = "<|START_THINKING|>", .end = "<|END_THINKING|>"},
};
constexpr ThoughtSpelling kUsualSpelling = {.begin = "<think>", .end = "</think>"};

// Marks around answers. The template speaks of both, and the prompt says what stands in `asked`.
struct AnswerSpelling {
  std::string_view begin, end;
  std::string_view asked = {};
};
constexpr AnswerSpelling kAnswerSpellings[] = {
    {.begin = "<answer>", .end = "</answer>"},  // Hunyuan: taken from the answers of earlier turns
    // Granite 3.3: asked for in the system message where the model is to think
    {.begin = "<response>", .end = "</response>", .asked = "<response></response>"},
};

void FindAnswerMarks(std::string_view prompt, std::string_view chat_template, AnswerForm& form) {
  const auto has = [](std::string_view text, std::string_view part) {
    return text.find(part) != text.npos;
  };
  for (const AnswerSpelling& spelling : kAnswerSpellings) {
    if (!has(chat_template, spelling.begin) || !has(chat_template, spelling.end) ||
        !has(prompt, spelling.asked)) {
      continue;
    }
    form.answer_begin = spelling.begin;
    form.answer_end = spelling.end;
    return;
  }
}

}  // namespace

AnswerForm FormOf(std::string_view prompt,
                  const std::function<bool(std::string_view text)>& is_token,
                  std::string_view chat_template) {
  prompt = prompt.substr(0, prompt.find_last_not_of(kFormBlanks) + 1);
  if (prompt.ends_with("<|start|>assistant")) {
    return {.thought = {.begin = "<|channel|>analysis<|message|>",
                        .end = "<|end|>",
                        .before_answer = {"<|channel|>final", "<|message|>"}},
            .is_channels = true};
  }
  const auto is_written = [&](const ThoughtSpelling& spelling) {
    return is_token && is_token(spelling.begin);
  };
  const auto* const found = std::ranges::find_if(kSpellings, is_written);
  const ThoughtSpelling& spelling = found == std::end(kSpellings) ? kUsualSpelling : *found;
  const std::string_view title =
      spelling.title.substr(0, spelling.title.find_last_not_of(kFormBlanks) + 1);
  if (prompt.ends_with(title)) {
    const std::string_view before = prompt.substr(0, prompt.size() - title.size());
    if (before.ends_with(spelling.begin)) prompt = before;
  }
  AnswerForm form{.thought = {.begin = std::string(spelling.begin),
                              .end = std::string(spelling.end),
                              .open = prompt.ends_with(spelling.begin)},
                  .thought_title = std::string(spelling.title)};
  FindAnswerMarks(prompt, chat_template, form);
  return form;
}

std::vector<std::string> MarksOf(const AnswerForm& form, bool with_tools) {
  if (form.is_channels) {
    return {"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>"};
  }
  if (form.thought.end.empty()) return {};
  std::vector<std::string> marks = {form.thought.begin, form.thought.end};
  if (!form.answer_begin.empty()) {
    marks.insert(marks.end(), {form.answer_begin, form.answer_end});
  }
  if (with_tools) std::ranges::copy(ToolCallReader::Marks(), std::back_inserter(marks));
  return marks;
}

}  // namespace godwit::chat
