// godwit eval quant: the loss by quantization: models beside the float model that they came from.

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/quote.h"
#include "checkpoint/model_folder.h"
#include "cli/options/find_model.h"
#include "cli/options/kv_options.h"
#include "cli/options/model_options.h"
#include "cli/options/smoothing_options.h"
#include "cli/summary.h"
#include "console/exit_code.h"
#include "console/terminal/json_output.h"
#include "console/terminal/output.h"
#include "console/terminal/output_file.h"
#include "console/terminal/progress_line.h"
#include "eval/comparison.h"
#include "eval/evaluate.h"
#include "eval/scored_leading_tokens.h"
#include "lab/commands.h"
#include "lab/reports/quant_report.h"
#include "lab/scored_files.h"
#include "lab/simulated_model.h"
#include "lab/task_runs.h"
#include "model/loader.h"

namespace godwit::lab {
namespace {

struct QuantEvalOptions {
  std::vector<std::string> models;  // names as given; the reference first
  cli::ModelOptions compute;        // of all models
  ScoredFiles text;
  int64_t window_tokens = 512;
  int64_t scored_tokens = -1;
  TaskOptions tasks;
  std::vector<std::string> simulated;  // as ParseInputSimulation takes them
  cli::CalibrationFlags calibration;   // of the simulated inputs
  bool json = false;
  std::optional<std::string> jsonl;
  SessionOptions session;
};

// A model's name in the report, and how to load it.
struct Model {
  std::string name;
  cli::ModelOptions options;
};

void ParseQuantEval(std::span<const std::string> arguments, QuantEvalOptions& options) {
  console::CommandLine line(
      "eval quant", "-m FLOAT [-m INT8 ...] -f FILE | -d FOLDER [flags]",
      "Measures the loss by quantization. The first model is the float reference; the others "
      "predict the same text and answer the same tasks.");
  line.Group("Model");
  line.Add({.names = "-m,--model",
            .value = "MODEL[:TYPE]",
            .help = "a model as for other verbs, given twice or more, or once with --simulate; "
                    "TYPE is its weight type, instead of --weights"},
           options.models);
  cli::AddComputeFlags(line, options.compute);
  AddScoredFilesFlags(line, options.text);
  line.AddInt({.names = "--max-tokens", .value = "N", .help = "score the first N tokens only"},
              options.scored_tokens, 1);
  line.AddInt({.names = "--window",
               .value = "N",
               .help = "score the text in windows of N tokens without earlier context; memory "
                       "holds the reference's logits of one window"},
              options.window_tokens, 1, 1 << 20);
  AddTaskFlags(line, options.tasks);
  line.Add({.names = "--simulate",
            .value = "SCALES",
            .help = "also measure the first model in f32 with inputs of its linear layers that "
                    "int8 can hold: per-tensor or per-channel, with scales of the calibration "
                    "text, or per-token; repeat it for several. :residual behind a name adds "
                    "SmoothQuant's factors where a layer reads the residual sum itself"},
           options.simulated);
  cli::AddCalibrationFlags(line, options.calibration);
  line.Group("Output");
  line.Add({.names = "--json", .value = "", .help = "print one JSON object"}, options.json);
  line.Add(
      {.names = "--jsonl",
       .value = "FILE",
       .help =
           "also write every token of every comparison at the end, one JSON object on each line"},
      options.jsonl);
  cli::AddKvFlags(line, options.session, options.compute.kv_memory);
  line.Parse(arguments);
}

// Splits "FOLDER:int8" at the last colon, if a storage type follows it. A folder whose own name
// ends in ":int8" can be given as "...:int8/".
Model ModelOf(const std::string& name, cli::ModelOptions options) {
  options.folder = name;
  for (const WeightType& type : kWeightTypes) {
    const std::string ending = fmt::format(":{}", type.name);
    if (!name.ends_with(ending)) continue;
    options.folder = name.substr(0, name.size() - ending.size());
    options.weights = type.name;
  }
  options.folder = cli::FindModel(options.folder);
  return {.name = name, .options = std::move(options)};
}

// All models, the reference first.
std::vector<Model> ModelsOf(const QuantEvalOptions& options) {
  for (const std::string& name : options.simulated) (void)ParseInputSimulation(name);
  if (!options.simulated.empty()) {
    cli::RequireCalibrationText(options.calibration);
  } else if (options.calibration.file) {
    Throw(ErrorKind::kInput, "--calib is the text of --simulate, which is not there");
  }
  std::vector<Model> models;
  for (const std::string& name : options.models) models.push_back(ModelOf(name, options.compute));
  if (models.empty()) {
    Throw(ErrorKind::kInput, "a float model to compare with is needed: name it with -m FOLDER");
  }
  if (models.size() == 1 && options.simulated.empty()) {
    Throw(ErrorKind::kInput,
          "there is nothing to compare {} with: name another model with -m, or --simulate",
          Quote(models.front().name));
  }
  for (const std::string& name : options.simulated) {
    CheckSimulation(ParseInputSimulation(name), ModelFolder(models.front().options.folder));
  }
  return models;
}

// Refuses what can be refused before a file is read.
void CheckQuantEval(const QuantEvalOptions& options, std::span<const Model> models) {
  if (options.text.files.empty() && options.tasks.folder.empty()) {
    Throw(ErrorKind::kInput, "a text (-f FILE) or a folder of task files (-d FOLDER) is needed");
  }
  if (options.tasks.folder.empty() && (!options.tasks.tasks.empty() || options.tasks.limit > 0)) {
    Throw(ErrorKind::kInput, "--tasks and --limit need a folder of task files: name it with -d");
  }
  if (options.jsonl && options.text.files.empty()) {
    Throw(ErrorKind::kInput, "--jsonl writes the tokens of a text: it needs -f FILE");
  }
  std::vector<console::NamedFile> inputs = Inputs(options.text, TaskFiles(options.tasks.folder));
  for (const Model& model : models) inputs.push_back({"-m", model.options.folder});
  console::CheckResultFiles({{"--jsonl", options.jsonl}}, inputs);
}

// Compares vocabularies before any weights are loaded: the last model may load hours after the
// first.
void CheckVocabularies(std::span<const Model> models) {
  const auto vocabulary = [](const Model& model) {
    return ModelFolder(model.options.folder).spec().vocab_size;
  };
  const int64_t expected = vocabulary(models.front());
  for (const Model& model : models.subspan(1)) {
    const int64_t found = vocabulary(model);
    if (found == expected) continue;
    Throw(ErrorKind::kInput,
          "{} has a vocabulary of {} and {} one of {}: their predictions cannot be compared",
          Quote(model.name), found, Quote(models.front().name), expected);
  }
}

// The text in the reference's tokens.
struct Text {
  std::vector<std::string> contents;
  bool reset;
  int64_t scored_tokens;  // -1: all
  std::vector<int32_t> frame;
  std::vector<std::vector<int32_t>> tokens;
};

std::vector<std::vector<int32_t>> TokensOf(const Text& text, const Engine& engine) {
  return TokenizeFiles(engine, text.contents, text.reset, text.scored_tokens);
}

void CheckSameTokens(const Text& text, const Model& model, const Engine& engine,
                     const Model& reference) {
  if (eval::ScoredLeadingTokens(engine) == text.frame && TokensOf(text, engine) == text.tokens) {
    return;
  }
  Throw(ErrorKind::kInput,
        "the tokenizers of {} and {} make different tokens of this text: their predictions cannot "
        "be compared",
        Quote(model.name), Quote(reference.name));
}

// Options of the reference, which has no quantized KV cache: only the other models have one.
SessionOptions OfReference(SessionOptions session) {
  session.kv_type = SessionOptions().kv_type;
  session.int8_attention = {};
  return session;
}

// Runs the tasks and shows progress.
std::vector<TaskResult> RunTasks(const Engine& engine, const eval::Reader& reader,
                                 std::span<const TaskRows> tasks) {
  const auto encoded = EncodeTasks(engine, reader.limit_tokens(), tasks);
  int64_t total_tokens = 0;
  for (const eval::EncodedTask& task : encoded) total_tokens += task.read_tokens;
  std::vector<TaskResult> results;
  int64_t done_tokens = 0;
  for (const eval::EncodedTask& task : encoded) {
    // The line's rate and time left are those of all tasks together.
    console::ProgressLine progress(fmt::format("evaluating {}", task.task->name),
                                   console::ProgressUnit::kTokens);
    KvReport longest;
    progress.Update(done_tokens, total_tokens, done_tokens);
    results.push_back({.task = task.task,
                       .metrics = eval::EvaluateTask(
                           reader, task,
                           [&](int64_t done) {
                             progress.Update(done_tokens + done, total_tokens, done_tokens);
                             if (const KvReport kv = reader.kv(); kv.seen > longest.seen)
                               longest = kv;
                           }),
                       .skipped = task.skipped});
    progress.Finish();
    cli::SayDropped(longest, fmt::format(" in the longest row of {}", task.task->name));
    done_tokens += task.read_tokens;
  }
  return results;
}

class Quant {
 public:
  Quant(const QuantEvalOptions& options, std::vector<Model> models)
      : options_(options), models_(std::move(models)) {}

  void Run() {
    if (!options_.tasks.folder.empty()) tasks_ = ReadTasks(options_.tasks);
    auto contents = ReadFiles(options_.text);
    if (!contents.empty()) CheckVocabularies(models_);

    const Engine engine = cli::LoadEngine(models_.front().options, options_.session);
    Session session = engine.NewSession(OfReference(options_.session));
    std::optional<Text> text;
    std::optional<eval::ScoringPlan> plan;
    if (!contents.empty()) {
      text = Text{.contents = std::move(contents),
                  .reset = options_.text.reset,
                  .scored_tokens = options_.scored_tokens,
                  .frame = eval::ScoredLeadingTokens(engine)};
      text->tokens = TokensOf(*text, engine);
      plan.emplace(text->tokens, text->frame,
                   eval::WindowOptions{.size = options_.window_tokens,
                                       .max_tokens = options_.scored_tokens});
      plan->CheckFits(session);
    }
    AddRow(models_.front().name, engine, session, {});
    for (const Model& model : std::span(models_).subspan(1)) {
      const Engine other = cli::LoadEngine(model.options, options_.session);
      Session other_session = other.NewSession(options_.session);
      std::optional<eval::ModelComparison> comparison;
      if (plan) {
        CheckSameTokens(*text, model, other, models_.front());
        comparison = Compare(model.name, session, other_session, *plan);
        cli::SayDropped(comparison->kv, " in the longest window");
      }
      AddRow(model.name, other, other_session, comparison);
    }
    Simulate(engine, session, plan);
    Report();
  }

 private:
  // Adds a row for every --simulate. engine: of the reference, whose tokens all rows have.
  void Simulate(const Engine& engine, Session& reference,
                const std::optional<eval::ScoringPlan>& plan) {
    if (options_.simulated.empty()) return;
    const SimulatedModel model(models_.front().options, options_.calibration);
    for (const std::string& name : options_.simulated) {
      const eval::Reader reader = model.ReaderOf(ParseInputSimulation(name));
      const std::string row = "inputs " + name;
      std::optional<eval::ModelComparison> comparison;
      if (plan) comparison = Compare(row, reference, reader, *plan);
      AddRow(row, engine, reader, comparison);
    }
  }

  void AddRow(const std::string& model, const Engine& engine, const eval::Reader& reader,
              const std::optional<eval::ModelComparison>& comparison) {
    rows_.push_back(
        {.model = model,
         .text = comparison,
         .tasks = tasks_.empty() ? std::vector<TaskResult>() : RunTasks(engine, reader, tasks_),
         .limit_tokens = reader.limit_tokens()});
  }

  eval::ModelComparison Compare(const std::string& model, const eval::Reader& reference,
                                const eval::Reader& other, const eval::ScoringPlan& plan) {
    const std::string label = model.substr(model.find_last_of('/') + 1);
    console::ProgressLine progress("comparing " + label, console::ProgressUnit::kTokens);
    const eval::ModelComparison comparison = eval::Compare(
        reference, other, plan,
        {.on_token =
             [&](const eval::ComparedToken& compared) {
               if (options_.jsonl) lines_ += ComparedTokenJson(model, compared);
             },
         .on_progress = [&](int64_t done, int64_t total) { progress.Update(done, total); }});
    progress.SayResult(ComparedText(label, comparison));
    return comparison;
  }

  void Report() const {
    if (options_.jsonl) console::WriteFile(*options_.jsonl, lines_);
    if (!options_.json) return console::WriteOutput(QuantText(rows_));
    nlohmann::ordered_json json;
    json["kv"] = options_.session.kv;
    if (const auto& text = rows_.back().text) {
      json["texts"] = options_.text.files;
      json["window"] = options_.window_tokens;
      json["tokens"] = text->tokens;
    }
    if (!tasks_.empty()) json["limit"] = options_.tasks.limit;
    PutQuant(json, rows_);
    console::WriteJson(json);
  }

  const QuantEvalOptions& options_;
  const std::vector<Model> models_;  // the reference first
  std::vector<TaskRows> tasks_;
  std::vector<QuantRow> rows_;
  std::string lines_;  // of --jsonl
};

}  // namespace

int EvalQuant(std::span<const std::string> arguments) {
  QuantEvalOptions options;
  ParseQuantEval(arguments, options);
  std::vector<Model> models = ModelsOf(options);
  CheckQuantEval(options, models);
  Quant(options, std::move(models)).Run();
  return console::kExitOk;
}

}  // namespace godwit::lab
