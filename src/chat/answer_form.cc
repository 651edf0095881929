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

}  // namespace

AnswerForm FormOf(std::string_view prompt,
                  const std::function<bool(std::string_view text)>& is_token) {
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
  return {.thought = {.begin = std::string(spelling.begin),
                      .end = std::string(spelling.end),
                      .open = prompt.ends_with(spelling.begin)},
          .thought_title = std::string(spelling.title)};
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
