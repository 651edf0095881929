#include "eval/tasks.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/error.h"
#include "base/file.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "base/split_text.h"
#include "base/utf8.h"

namespace godwit::eval {
namespace {

constexpr size_t kMaxBytes = size_t{256} << 20;

// A question with one context and several answers.
Question ChooseAnswer(const JsonlRow& row, const std::string& context) {
  Question question{.where = row.where()};
  for (std::string& answer : row.Texts("choices")) {
    question.choices.push_back({.context = context, .answer = std::move(answer)});
  }
  question.gold = row.Index("gold", question.choices.size());
  return question;
}

// The query without its required beginning and end.
std::string Inside(const JsonlRow& row, std::string_view prefix, std::string_view suffix) {
  const std::string query = row.Text("query");
  if (query.size() <= prefix.size() + suffix.size() || !query.starts_with(prefix) ||
      !query.ends_with(suffix)) {
    row.Refuse("query", Quote(fmt::format("{}...{}", prefix, suffix)), Quote(query));
  }
  return query.substr(prefix.size(), query.size() - prefix.size() - suffix.size());
}

Question AskArc(const JsonlRow& row) {
  return ChooseAnswer(row, "Question: " + Inside(row, "Question: ", "") + "\nAnswer:");
}

Question AskBoolQ(const JsonlRow& row) {
  const std::string text = Inside(row, "Passage: ", "?");
  if (text.find("\nQuestion: ") == std::string::npos) {
    row.Refuse("query", "a line \"Question: ...\" after the passage", Quote(text));
  }
  return ChooseAnswer(row, text + "?\nAnswer:");
}

// The harness puts no comma before the connector.
Question AskCopa(const JsonlRow& row) {
  const std::string query = row.Text("query");
  for (const std::string_view connector : {" because", " therefore"}) {
    const std::string end = fmt::format(",{}", connector);
    if (query.ends_with(end)) {
      return ChooseAnswer(row, fmt::format("{}{}", Inside(row, "", end), connector));
    }
  }
  row.Refuse("query", R"("..., because" or "..., therefore")", Quote(query));
}

std::string Replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t found = std::min(text.find(from, at), text.size());
    result += text.substr(at, found - at);
    if (found < text.size()) result += to;
    at = found + from.size();
  }
  return result;
}

// The text without marks such as "[step]", each on one line.
std::string WithoutBrackets(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = std::min(text.find('[', at), text.size());
    result += text.substr(at, begin - at);
    const size_t end = std::min(text.find_first_of("]\n", begin), text.size());
    const bool is_mark = end < text.size() && text[end] == ']';
    if (!is_mark) result += text.substr(begin, end - begin);
    at = is_mark ? end + 1 : end;
  }
  return result;
}

// The text as the harness takes it from WikiHow.
std::string WithoutMarks(std::string_view text) {
  return Replaced(WithoutBrackets(Replaced(Stripped(text), " [title]", ". ")), "  ", " ");
}

// Rows as they were published. The harness makes the beginning of a sentence out of ctx_b.
Question AskHellaSwag(const JsonlRow& row) {
  std::string second = Lower(row.AnyText("ctx_b"));
  if (!second.empty() && second[0] >= 'a' && second[0] <= 'z') {
    second[0] = static_cast<char>(second[0] - 'a' + 'A');
  }
  const std::string context =
      WithoutMarks(fmt::format("{}: {} {}", row.Text("activity_label"), row.Text("ctx_a"), second));
  Question question{.where = row.where()};
  for (const std::string& ending : row.Texts("endings")) {
    std::string answer = WithoutMarks(ending);
    if (answer.empty()) row.Refuse("endings", "text beside the marks", Quote(ending));
    question.choices.push_back({.context = context, .answer = std::move(answer)});
  }
  question.gold = row.Index("label", question.choices.size());
  return question;
}

Question AskLambada(const JsonlRow& row) {
  return {.where = row.where(),
          .choices = {{.context = row.Text("context"), .answer = row.Text("continuation")}}};
}

// A question whose answers are given words. label: the key of the right one's number.
Question ChooseWord(const JsonlRow& row, const std::string& context,
                    std::span<const std::string_view> words, const char* label = "label") {
  Question question{.where = row.where()};
  for (const std::string_view word : words) {
    question.choices.push_back({.context = context, .answer = std::string(word)});
  }
  question.gold = row.Index(label, words.size());
  return question;
}

// Rows of GLUE's tasks name their labels by number; the first word stands for "entailment".
Question AskMnli(const JsonlRow& row) {
  constexpr std::string_view kWords[] = {"True", "Neither", "False"};
  const std::string text = row.Text("hypothesis");
  const std::string_view hypothesis = Stripped(text);
  return ChooseWord(
      row,
      fmt::format("{}\nQuestion: {}{} True, False or Neither?\nAnswer:", row.Text("premise"),
                  hypothesis, hypothesis.ends_with('.') ? "" : "."),
      kWords);
}

Question AskQnli(const JsonlRow& row) {
  constexpr std::string_view kWords[] = {"yes", "no"};
  return ChooseWord(
      row,
      fmt::format("{}\n{}\nQuestion: Does this response answer the question?\nAnswer:",
                  row.Text("question"), row.Text("sentence")),
      kWords);
}

Question AskRte(const JsonlRow& row) {
  constexpr std::string_view kWords[] = {"True", "False"};
  return ChooseWord(row,
                    fmt::format("{}\nQuestion: {} True or False?\nAnswer:", row.Text("sentence1"),
                                row.Text("sentence2")),
                    kWords);
}

// The choices are part of the context, and letters answer.
Question AskMmlu(const JsonlRow& row) {
  constexpr std::string_view kLetters[] = {"A", "B", "C", "D"};
  const std::vector<std::string> choices = row.Texts("choices");
  if (choices.size() != std::size(kLetters)) {
    row.Refuse("choices", "a list of 4 texts", fmt::format("{} of them", choices.size()));
  }
  const std::string text = row.Text("question");
  std::string context =
      fmt::format("The following are multiple choice questions (with answers) about {}.\n\n{}\n",
                  Replaced(row.Text("subject"), "_", " "), Stripped(text));
  for (size_t i = 0; i < choices.size(); ++i) {
    context += fmt::format("{}. {}\n", kLetters[i], choices[i]);
  }
  return ChooseWord(row, context + "Answer:", kLetters, "answer");
}

Question AskOpenBookQa(const JsonlRow& row) { return ChooseAnswer(row, row.Text("query")); }

Question AskPiqa(const JsonlRow& row) {
  return ChooseAnswer(row, "Question: " + Inside(row, "Question: ", "\n") + "\nAnswer:");
}

// Partial evaluation: the options are part of the context, and the same text follows them.
Question AskSchema(const JsonlRow& row) {
  Question question{.where = row.where()};
  const std::string rest = row.Text("continuation");
  for (std::string& context : row.Texts("context_options")) {
    question.choices.push_back({.context = std::move(context), .answer = rest});
  }
  question.gold = row.Index("gold", question.choices.size());
  return question;
}

constexpr Task kTasks[] = {
    {"arc_challenge", Scoring::kNormalizedChoice, AskArc},
    {"arc_easy", Scoring::kNormalizedChoice, AskArc},
    {"boolq", Scoring::kChoice, AskBoolQ},
    {"copa", Scoring::kChoice, AskCopa},
    {"hellaswag", Scoring::kNormalizedChoice, AskHellaSwag},
    {"lambada_openai", Scoring::kLastWord, AskLambada},
    {"mmlu", Scoring::kChoice, AskMmlu},
    {"mnli", Scoring::kChoice, AskMnli},
    {"openbook_qa", Scoring::kNormalizedChoice, AskOpenBookQa},
    {"piqa", Scoring::kNormalizedChoice, AskPiqa},
    {"qnli", Scoring::kChoice, AskQnli},
    {"rte", Scoring::kChoice, AskRte},
    {"winograd_wsc", Scoring::kChoice, AskSchema},
    {"winogrande", Scoring::kChoice, AskSchema},
};

}  // namespace

std::span<const Task> AllTasks() { return kTasks; }

const Task& FindTask(std::string_view name) {
  for (const Task& task : kTasks) {
    if (task.name == name) return task;
  }
  Throw(ErrorKind::kInput, "unknown task {}; there are: {}", Quote(name),
        NameList(kTasks, &Task::name));
}

std::filesystem::path TaskFile(const std::filesystem::path& folder, const Task& task) {
  return folder / (std::string(task.name) + ".jsonl");
}

std::vector<Question> ReadQuestions(const std::filesystem::path& file, const Task& task) {
  const std::string text = ReadTextFile(file, kMaxBytes);
  std::vector<Question> questions;
  std::string_view rest = text;
  for (int64_t number = 1; !rest.empty(); ++number) {
    const std::string_view line = TakeLine(rest);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = fmt::format("{}:{}", file.native(), number);
    if (const auto invalid = FirstInvalidUtf8(line)) {
      Throw(ErrorKind::kFormat, "{}: not UTF-8: found byte 0x{:02x} at offset {} of the file",
            where, static_cast<unsigned char>(line[*invalid]),
            line.data() - text.data() + *invalid);
    }
    questions.push_back(task.ask(JsonlRow(line, where)));
  }
  if (questions.empty())
    Throw(ErrorKind::kFormat, "{}: expected at least one row, found none", file.native());
  return questions;
}

}  // namespace godwit::eval
