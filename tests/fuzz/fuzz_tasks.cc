#include "eval/tasks.h"
#include "tests/fuzz/targets.h"
#include "tests/fuzz/written_file.h"

namespace godwit::fuzz {

// A .jsonl file, read as each of the tasks.
void FuzzTasks(std::span<const uint8_t> input) {
  static const WrittenFile file("rows.jsonl");
  file.Write(input);
  for (const eval::Task& task : eval::AllTasks()) {
    Accepts([&] {
      const auto questions = eval::ReadQuestions(file.path(), task);
      Require(!questions.empty(), "a file without rows is refused");
      for (const eval::Question& question : questions) {
        Require(question.where.starts_with(file.path().string() + ":"), "it knows its line");
        Require(question.gold < question.choices.size(), "one of the choices is right");
        for (const eval::Choice& choice : question.choices) {
          Require(!choice.context.empty() && !choice.answer.empty(), "there is text to score");
        }
      }
    });
  }
}

}  // namespace godwit::fuzz
