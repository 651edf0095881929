// Every task on handwritten rows, and on the real files where they exist.

#include "eval/tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "base/test_support.h"

namespace godwit::eval::tasks_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Question Ask(std::string_view task, std::string_view line) {
  return FindTask(task).ask(JsonlRow(line, "file:7"));
}

void ExpectChoice(const Question& question, size_t i, std::string_view context,
                  std::string_view answer) {
  ASSERT_LT(i, question.choices.size());
  EXPECT_EQ(question.choices[i].context, context);
  EXPECT_EQ(question.choices[i].answer, answer);
}

TEST(TasksTest, Arc) {
  for (const char* task : {"arc_easy", "arc_challenge"}) {
    const Question question = Ask(task, R"({"query": "Question: What is ice?", "gold": 2,
                                           "choices": ["Air", "Fire", "Solid water", "Rock"]})");
    EXPECT_EQ(question.where, "file:7");
    EXPECT_EQ(question.gold, 2u);
    ASSERT_EQ(question.choices.size(), 4u);
    ExpectChoice(question, 0, "Question: What is ice?\nAnswer:", "Air");
    ExpectChoice(question, 2, "Question: What is ice?\nAnswer:", "Solid water");
  }
}

TEST(TasksTest, BoolQ) {
  const Question question = Ask("boolq", R"({"choices": ["no", "yes"], "gold": 1, "query":
      "Passage: Godwits are waders.\nThey fly far.\nQuestion: do godwits fly?"})");
  EXPECT_EQ(question.gold, 1u);
  ASSERT_EQ(question.choices.size(), 2u);
  const auto* context = "Godwits are waders.\nThey fly far.\nQuestion: do godwits fly?\nAnswer:";
  ExpectChoice(question, 0, context, "no");
  ExpectChoice(question, 1, context, "yes");
}

TEST(TasksTest, Copa) {
  const Question effect = Ask("copa", R"({"query": "The man opened the tap, therefore", "gold": 1,
                                          "choices": ["he slept.", "water flowed."]})");
  EXPECT_EQ(effect.gold, 1u);
  ExpectChoice(effect, 0, "The man opened the tap therefore", "he slept.");
  ExpectChoice(effect, 1, "The man opened the tap therefore", "water flowed.");
  const Question cause = Ask("copa", R"({"query": "He fell, for once, because", "gold": 0,
                                         "choices": ["it was icy.", "he sang."]})");
  ExpectChoice(cause, 0, "He fell, for once because", "it was icy.");
}

TEST(TasksTest, HellaSwag) {
  const Question question = Ask("hellaswag", R"({"ind": 24, "activity_label": "Roof removal",
      "ctx_a": "A man sits on a roof.", "ctx_b": "he Then", "ctx": "unused", "label": 3,
      "endings": ["is using wrap.", " tears it off [substeps] with care.", "[x] [y", "starts."]})");
  EXPECT_EQ(question.gold, 3u);
  ASSERT_EQ(question.choices.size(), 4u);
  const auto* context = "Roof removal: A man sits on a roof. He then";
  ExpectChoice(question, 0, context, "is using wrap.");
  ExpectChoice(question, 1, context, "tears it off with care.");
  ExpectChoice(question, 2, context, " [y");
  ExpectChoice(question, 3, context, "starts.");
}

TEST(TasksTest, HellaSwagOfWikiHow) {
  const Question question = Ask("hellaswag", R"({"activity_label": "Home", "ctx_b": "", "label": 0,
      "ctx_a": "[header] How to mop [title] Get a mop. [step] Buy one.",
      "endings": ["Then. [title] Mop.", "Rest."]})");
  ExpectChoice(question, 0, "Home: How to mop. Get a mop. Buy one.", "Then.. Mop.");
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat,
                      [] {
                        Ask("hellaswag", R"({"activity_label": "a", "ctx_a": "b", "ctx_b": 1,
                                             "endings": ["c", "d"], "label": 0})");
                      }),
              HasSubstr(R"("ctx_b": expected text, found 1)"));
}

TEST(TasksTest, Mnli) {
  const Question question = Ask("mnli", R"({"premise": "The inn was full. ", "idx": 7, "label": 1,
      "hypothesis": " Nobody slept"})");
  EXPECT_EQ(question.gold, 1u);
  ASSERT_EQ(question.choices.size(), 3u);
  const auto* context =
      "The inn was full. \nQuestion: Nobody slept. True, False or Neither?\nAnswer:";
  ExpectChoice(question, 0, context, "True");
  ExpectChoice(question, 1, context, "Neither");
  ExpectChoice(question, 2, context, "False");
  ExpectChoice(Ask("mnli", R"({"premise": "a", "hypothesis": "b.\n", "label": 0})"), 0,
               "a\nQuestion: b. True, False or Neither?\nAnswer:", "True");
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat,
                      [] { Ask("mnli", R"({"premise": "a", "hypothesis": "b", "label": -1})"); }),
              HasSubstr(R"("label": expected an integer from 0 to 2, found -1)"));
}

TEST(TasksTest, Qnli) {
  const Question question = Ask("qnli", R"({"question": "Where is the sea?", "label": 0,
      "sentence": "It lies in the west.", "idx": 0})");
  EXPECT_EQ(question.gold, 0u);
  ASSERT_EQ(question.choices.size(), 2u);
  const auto* context =
      "Where is the sea?\nIt lies in the west.\n"
      "Question: Does this response answer the question?\nAnswer:";
  ExpectChoice(question, 0, context, "yes");
  ExpectChoice(question, 1, context, "no");
}

TEST(TasksTest, Rte) {
  const Question question = Ask("rte", R"({"sentence1": "A ship came in.", "label": 1,
      "sentence2": "No ship came.", "idx": 0})");
  EXPECT_EQ(question.gold, 1u);
  ASSERT_EQ(question.choices.size(), 2u);
  const auto* context = "A ship came in.\nQuestion: No ship came. True or False?\nAnswer:";
  ExpectChoice(question, 0, context, "True");
  ExpectChoice(question, 1, context, "False");
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [] { Ask("rte", R"({"sentence1": "a", "label": 0})"); }),
              HasSubstr("expected a field \"sentence2\""));
}

TEST(TasksTest, Mmlu) {
  const Question question = Ask("mmlu", R"({"question": " What is 2 + 2? ", "answer": 3,
      "subject": "elementary_school_mathematics", "choices": ["1", "2", "3", "4"]})");
  EXPECT_EQ(question.gold, 3u);
  ASSERT_EQ(question.choices.size(), 4u);
  const auto* context =
      "The following are multiple choice questions (with answers) about elementary school "
      "mathematics.\n\nWhat is 2 + 2?\nA. 1\nB. 2\nC. 3\nD. 4\nAnswer:";
  ExpectChoice(question, 0, context, "A");
  ExpectChoice(question, 3, context, "D");
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat,
                      [] {
                        Ask("mmlu", R"({"question": "a", "subject": "b", "answer": 0,
                                        "choices": ["c", "d", "e"]})");
                      }),
              HasSubstr(R"("choices": expected a list of 4 texts, found 3 of them)"));
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat,
                      [] {
                        Ask("mmlu", R"({"question": "a", "subject": "b", "answer": "A",
                                        "choices": ["c", "d", "e", "f"]})");
                      }),
              HasSubstr(R"("answer": expected an integer from 0 to 3)"));
}

TEST(TasksTest, Lambada) {
  const Question question =
      Ask("lambada_openai", R"({"context": "\"I know,\" said", "continuation": "Shane"})");
  EXPECT_EQ(question.gold, 0u);
  ASSERT_EQ(question.choices.size(), 1u);
  ExpectChoice(question, 0, "\"I know,\" said", "Shane");
}

TEST(TasksTest, OpenBookQa) {
  const Question question = Ask("openbook_qa", R"({"query": "Clouds can bring", "gold": 3,
                                                   "choices": ["sun", "sand", "heat", "rain"]})");
  EXPECT_EQ(question.gold, 3u);
  ExpectChoice(question, 3, "Clouds can bring", "rain");
}

TEST(TasksTest, Piqa) {
  const Question question = Ask("piqa", R"({"query": "Question: Open a jar\n", "gold": 0,
                                            "choices": ["Turn the lid.", "Turn the page."]})");
  ASSERT_EQ(question.choices.size(), 2u);
  ExpectChoice(question, 0, "Question: Open a jar\nAnswer:", "Turn the lid.");
  ExpectChoice(question, 1, "Question: Open a jar\nAnswer:", "Turn the page.");
}

TEST(TasksTest, SchemasHaveTheirOptionsInTheContext) {
  for (const char* task : {"winogrande", "winograd_wsc"}) {
    const Question question = Ask(task, R"({"continuation": "was ill.", "gold": 1,
        "context_options": ["Ann saw Eve as Ann", "Ann saw Eve as Eve"]})");
    EXPECT_EQ(question.gold, 1u);
    ASSERT_EQ(question.choices.size(), 2u);
    ExpectChoice(question, 0, "Ann saw Eve as Ann", "was ill.");
    ExpectChoice(question, 1, "Ann saw Eve as Eve", "was ill.");
  }
}

TEST(TasksTest, RefusesBrokenRows) {
  const auto refusal = [](std::string_view task, std::string_view line) {
    return ErrorOf(ErrorKind::kFormat, [&] { Ask(task, line); });
  };
  EXPECT_THAT(refusal("piqa", "{"), HasSubstr("file:7: "));
  EXPECT_THAT(refusal("piqa", "[1]"), HasSubstr("file:7: expected a JSON object"));
  EXPECT_THAT(refusal("piqa", R"({"choices": ["a", "b"], "gold": 0})"),
              HasSubstr(R"(file:7: expected a field "query", found only: "choices, gold")"));
  EXPECT_THAT(refusal("openbook_qa", R"({"query": "a", "query": "b"})"), HasSubstr("two keys"));
  EXPECT_THAT(refusal("openbook_qa", R"({"query": 3})"),
              HasSubstr(R"("query": expected text, found 3)"));
  EXPECT_THAT(refusal("openbook_qa", R"({"query": " \n"})"), HasSubstr("nothing but blanks"));
  EXPECT_THAT(refusal("openbook_qa", R"({"query": "a", "choices": ["a"]})"),
              HasSubstr(R"("choices": expected a list of 2 to 100 texts, found a list of 1)"));
  EXPECT_THAT(refusal("openbook_qa", R"({"query": "a", "choices": ["a", {}]})"),
              HasSubstr(R"("choices": expected text, found an object)"));
  for (const char* gold : {"2", "-1", "1.0", "\"1\"", "null", "[0]"}) {
    EXPECT_THAT(refusal("openbook_qa", fmt::format(R"({{"query": "a", "choices": ["a", "b"],
                                                       "gold": {}}})",
                                                   gold)),
                HasSubstr(R"("gold": expected an integer from 0 to 1, found )"));
  }
  EXPECT_THAT(refusal("arc_easy", R"({"query": "What is ice?"})"),
              HasSubstr(R"("query": expected "Question: ...", found "What is ice?")"));
  EXPECT_THAT(refusal("piqa", R"({"query": "Question: \n"})"), HasSubstr(R"("Question: ...\x0a")"));
  EXPECT_THAT(refusal("boolq", R"({"query": "Passage: Godwits fly. Do they?"})"),
              HasSubstr("after the passage"));
  EXPECT_THAT(refusal("copa", R"({"query": "He fell and"})"),
              AllOf(HasSubstr(", because"), HasSubstr(", therefore")));
}

TEST(TasksTest, AnUnknownNameListsTheKnown) {
  const std::string message = ErrorOf(ErrorKind::kInput, [] { FindTask("arc"); });
  for (const Task& task : AllTasks()) EXPECT_THAT(message, HasSubstr(task.name));
}

TEST(TasksTest, ReadsAFile) {
  const TempFolder folder;
  const Task& task = FindTask("lambada_openai");
  const auto file = TaskFile(folder.path(), task);
  EXPECT_EQ(file.filename(), "lambada_openai.jsonl");
  ErrorOf(ErrorKind::kIo, [&] { ReadQuestions(file, task); });

  const std::string row = R"({"context": "a b", "continuation": "c"})";
  folder.Write("lambada_openai.jsonl", row + "\r\n\n" + row);
  const auto questions = ReadQuestions(file, task);
  ASSERT_EQ(questions.size(), 2u);
  EXPECT_TRUE(questions[1].where.ends_with("lambada_openai.jsonl:3")) << questions[1].where;

  folder.Write("lambada_openai.jsonl", row + "\n" + row + "\n{}\n");
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { ReadQuestions(file, task); }),
              HasSubstr("lambada_openai.jsonl:3: "));
  folder.Write("lambada_openai.jsonl", row + "\n{\"context\": \"a\xff\"}");
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { ReadQuestions(file, task); }),
              HasSubstr("lambada_openai.jsonl:2: not UTF-8: found byte 0xff at offset " +
                        std::to_string(row.size() + 15)));
  folder.Write("lambada_openai.jsonl", "\n");
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { ReadQuestions(file, task); }),
              HasSubstr("at least one row"));
}

TEST(TasksTest, ReadsTheRealFiles) {
  const auto folder = std::filesystem::path(GODWIT_SOURCE_DIR) / "../shared/data/corpora/eval";
  if (!std::filesystem::is_directory(folder)) {
    GTEST_SKIP() << "notice: no task files in " << folder;
  }
  const std::pair<const char*, size_t> rows[] = {
      {"arc_challenge", 1172}, {"arc_easy", 2376},   {"boolq", 3270},
      {"copa", 100},           {"openbook_qa", 500}, {"lambada_openai", 5153},
      {"piqa", 1838},          {"winogrande", 1267}, {"winograd_wsc", 273}};
  EXPECT_EQ(std::size(rows) + 5, AllTasks().size())
      << "those of HellaSwag, MMLU, MNLI, QNLI and RTE are not there";
  for (const auto& [name, count] : rows) {
    const Task& task = FindTask(name);
    EXPECT_EQ(ReadQuestions(TaskFile(folder, task), task).size(), count) << name;
  }
}

}  // namespace
}  // namespace godwit::eval::tasks_test
