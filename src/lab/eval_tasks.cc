// godwit eval tasks: zero-shot tasks, scored as lm-evaluation-harness scores them.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/summary.h"
#include "console/terminal/output.h"
#include "console/terminal/progress_line.h"
#include "lab/answer_file.h"
#include "lab/commands.h"
#include "lab/compared_options.h"
#include "lab/reports/comparison_report.h"
#include "lab/task_runs.h"

namespace godwit::lab {
namespace {

using eval::EncodedQuestion;
using eval::EncodedTask;
using eval::Scoring;
using Json = nlohmann::ordered_json;

struct TasksEvalOptions : ComparedOptions {
  TaskOptions tasks;
};

void ParseTasksEval(std::span<const std::string> arguments, TasksEvalOptions& options) {
  console::CommandLine line(
      "eval tasks", "[-m MODEL] -d FOLDER [flags]",
      std::string("Scores a model on zero-shot tasks with the prompts and the convention of "
                  "lm-evaluation-harness: the most probable of several continuations is the "
                  "model's answer.") +
          kComparesPolicies);
  cli::AddModelFlag(line, options.model);
  cli::AddComputeFlags(line, options.model);
  AddTaskFlags(line, options.tasks);
  AddSeedFlag(line, options, "the seed of confidence intervals");
  AddComparedFlags(line, options, "the prompts of the first N questions", "1");
  line.Parse(arguments);
  if (options.tasks.folder.empty()) {
    Throw(ErrorKind::kInput, "a folder of task files is needed: name it with -d FOLDER");
  }
  FinishCompared(options, TaskFiles(options.tasks.folder));
  // A row may have nothing but a question, so all of it except its last token is the context.
  if (options.query_tokens == 0) options.query_tokens = 1;
}

// The session and progress of one policy.
struct Asker {
  std::string kv;
  Session session;
  KvReport longest = {};  // after the longest row of a task
};

class TaskRun {
 public:
  TaskRun(const TasksEvalOptions& options, const Engine& engine, std::span<const TaskRows> rows)
      : options_(options),
        engine_(engine),
        answers_(options.show > 0 ? std::nullopt : options.output, SettingsText(options),
                 {"task", "row"}, {{"acc", 0}, {"acc_norm", 0}, {"nll", 0}}),
        comparison_(options.kvs, options.seed) {
    for (const std::string& kv : options.kvs) {
      askers_.push_back({.kv = kv, .session = NewSession(engine, options, kv)});
      limit_tokens_ = std::min(limit_tokens_, askers_.back().session.limit_tokens());
    }
    tasks_ = EncodeTasks(engine, limit_tokens_, rows);
    for (const EncodedTask& task : tasks_) total_tokens_ += task.read_tokens;
    total_tokens_ *= std::ssize(askers_);
  }

  void Show() const {
    int64_t left = options_.show;
    for (const EncodedTask& task : tasks_) {
      for (const EncodedQuestion& question : task.questions) {
        if (left-- == 0) return;
        const auto count = question.choices.size();
        for (size_t i = 0; i < count; ++i) {
          const bool is_right = count > 1 && i == question.question.gold;
          console::WriteOutput(fmt::format("=== {}, choice {} of {}{}\n{}\n",
                                           DescribeSample(NameOf(task, question)), i + 1, count,
                                           is_right ? ", the right one" : "",
                                           engine_.Detokenize(question.choices[i].tokens)));
        }
      }
    }
  }

  void Ask() {
    for (const EncodedTask& task : tasks_) AskTask(task);
  }

  std::string Text() const {
    std::string text = comparison_.Text(console::TableColumns());
    for (const EncodedTask& task : tasks_) {
      text += SkippedText(task.task->name, task.skipped, std::ssize(task.questions), limit_tokens_);
    }
    return text;
  }

  Json Report() const {
    Json skipped = Json::object();
    for (const EncodedTask& task : tasks_) skipped[std::string(task.task->name)] = task.skipped;
    return {{"model", options_.model.folder}, {"suite", "tasks"},
            {"how", SettingsText(options_)},  {"seed", options_.seed},
            {"limit", options_.tasks.limit},  {"skipped", std::move(skipped)},
            {"cells", comparison_.Json()}};
  }

 private:
  static Json NameOf(const EncodedTask& task, const EncodedQuestion& question) {
    return {{"task", task.task->name}, {"row", question.row}};
  }

  static std::string FingerprintOf(const EncodedQuestion& question) {
    std::vector<int32_t> all;
    for (const eval::EncodedPair& pair : question.choices) {
      std::ranges::copy(pair.tokens, std::back_inserter(all));
    }
    return Fingerprint(all, static_cast<int64_t>(question.question.gold));
  }

  static Json AboutOf(const EncodedTask& task, double chance, std::string_view figure) {
    Json about{{"task", task.task->name}, {"figure", figure}, {"chance", nullptr}};
    if (task.task->scoring != Scoring::kLastWord) about["chance"] = chance;
    return about;
  }

  static bool HasFigure(const EncodedTask& task, std::string_view figure) {
    if (figure == "acc_norm") return task.task->scoring == Scoring::kNormalizedChoice;
    return figure == "acc" || task.task->scoring == Scoring::kLastWord;
  }

  void AskTask(const EncodedTask& task) {
    console::ProgressLine progress(fmt::format("evaluating {}", task.task->name),
                                   console::ProgressUnit::kTokens);
    const auto update = [&] { progress.Update(done_tokens_, total_tokens_, known_tokens_); };
    update();
    for (Asker& asker : askers_) asker.longest = {};
    double chance = 0;  // the accuracy of guessing
    for (const EncodedQuestion& question : task.questions) {
      chance += 1.0 / static_cast<double>(question.choices.size());
    }
    chance /= static_cast<double>(task.questions.size());
    for (const EncodedQuestion& question : task.questions) {
      for (size_t kv = 0; kv < askers_.size(); ++kv) {
        Add(task, chance, kv, MarksOf(task, question, askers_[kv], update));
        done_tokens_ += question.read_tokens;
        update();
      }
      progress.Note(comparison_.SoFar(comparison_.Row({.about = AboutOf(task, chance, "acc")})));
    }
    for (const char* const figure : {"acc", "acc_norm", "perplexity"}) {
      if (!HasFigure(task, figure)) continue;
      progress.SayResult(
          comparison_.SoFar(comparison_.Row({.about = AboutOf(task, chance, figure)})));
    }
    progress.Finish();
    for (const Asker& asker : askers_) {
      cli::SayDropped(asker.longest, fmt::format(" in the longest row of {}", task.task->name));
    }
  }

  eval::Marks MarksOf(const EncodedTask& task, const EncodedQuestion& question, Asker& asker,
                      const std::function<void()>& on_choice) {
    const Asked asked{
        .sample = NameOf(task, question), .kv = asker.kv, .prompt = FingerprintOf(question)};
    if (const auto* known = answers_.Find(asked)) {
      known_tokens_ += question.read_tokens;
      return {.acc = known->at("acc").get<double>(),
              .acc_norm = known->at("acc_norm").get<double>(),
              .nll = known->at("nll").get<double>()};
    }
    Json sums = Json::array();
    const auto scores = eval::ScoreQuestion(asker.session, question, options_.query_tokens, [&] {
      if (const KvReport kv = asker.session.kv(); kv.seen > asker.longest.seen) {
        asker.longest = kv;
      }
      on_choice();
    });
    for (const eval::Score& score : scores) sums.push_back(score.log_probability);
    const eval::Marks marks = eval::MarksOf(task.task->scoring, question.question, scores);
    answers_.Append(asked, {{"gold", question.question.gold},
                            {"scores", std::move(sums)},
                            {"acc", marks.acc},
                            {"acc_norm", marks.acc_norm},
                            {"nll", marks.nll}});
    return marks;
  }

  // Adds one row's marks to the figures that the task has.
  void Add(const EncodedTask& task, double chance, size_t kv, const eval::Marks& marks) {
    const auto add = [&](const char* figure, double score, bool exponential = false) {
      if (!HasFigure(task, figure)) return;
      comparison_.Row({.about = AboutOf(task, chance, figure), .exponential = exponential})
          .scores[kv]
          .push_back(score);
    };
    add("acc", marks.acc);
    add("acc_norm", marks.acc_norm);
    add("perplexity", marks.nll, /*exponential=*/true);
  }

  const TasksEvalOptions& options_;
  const Engine& engine_;
  AnswerFile answers_;
  PolicyComparison comparison_;
  std::vector<Asker> askers_;
  int64_t limit_tokens_ = INT64_MAX;  // a question that one policy cannot read is asked of none
  std::vector<EncodedTask> tasks_;
  int64_t total_tokens_ = 0, done_tokens_ = 0, known_tokens_ = 0;
};

}  // namespace

int EvalTasks(std::span<const std::string> arguments) {
  TasksEvalOptions options;
  ParseTasksEval(arguments, options);
  const auto rows = ReadTasks(options.tasks);
  const Engine engine = cli::LoadEngine(options.model, options.session, options.kvs);
  TaskRun run(options, engine, rows);
  return ShowOrAsk(run, options);
}

}  // namespace godwit::lab
