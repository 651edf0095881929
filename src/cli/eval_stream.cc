// godwit eval stream: questions about an endless text while it goes on, under any cache policy.

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "cli/exit_code.h"
#include "cli/options/kv_options.h"
#include "cli/options/model_options.h"
#include "cli/options/parse_value.h"
#include "cli/reports/stream_report.h"
#include "cli/terminal/json_output.h"
#include "cli/terminal/output.h"
#include "cli/terminal/output_file.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/result_files.h"
#include "cli/terminal/summary.h"
#include "cli/verbs.h"
#include "eval/recompute.h"
#include "eval/stream_arc.h"
#include "eval/stream_eval.h"
#include "eval/tasks.h"

namespace godwit::cli {
namespace {

constexpr int64_t kMost = int64_t{1} << 32;
constexpr const char* kArcTasks[] = {"arc_easy", "arc_challenge"};

struct Options {
  ModelOptions model;
  // Of the lines. What is not given keeps the default of StreamEvalOptions.
  std::optional<int64_t> lines, every, samples;
  std::optional<uint64_t> seed;
  std::vector<int64_t> distances;
  // Of ARC.
  std::optional<std::string> arc;
  int64_t limit = 0;  // rows of each file; 0: all
  eval::Feed feed = eval::Feed::kAnswer;
  int64_t max_new_tokens = 0;  // 0: 16 for lines, 64 for ARC
  bool json = false;
  std::optional<std::string> jsonl;
  SessionOptions session;
};

constexpr std::pair<std::string_view, eval::Feed> kFeeds[] = {{"answer", eval::Feed::kAnswer},
                                                              {"gold", eval::Feed::kGold},
                                                              {"nothing", eval::Feed::kNothing}};

eval::Feed ParseFeed(const std::string& value) {
  for (const auto& [name, feed] : kFeeds) {
    if (value == name) return feed;
  }
  Throw(ErrorKind::kInput, "expected answer, gold or nothing, found {}", Quote(value));
}

std::string_view FeedName(eval::Feed feed) {
  return std::find_if(std::begin(kFeeds), std::end(kFeeds),
                      [&](const auto& entry) { return entry.second == feed; })
      ->first;
}

void ParseDistances(const std::string& list, std::vector<int64_t>& distances) {
  for (const std::string_view part : SplitAtCommas(list)) {
    const int64_t distance = ParseInt(part, 0, kMost);
    if (std::find(distances.begin(), distances.end(), distance) != distances.end()) {
      Throw(ErrorKind::kInput, "the distance {} is named twice", distance);
    }
    distances.push_back(distance);
  }
}

void AddOptionalInt(CommandLine& line, Flag flag, std::optional<int64_t>& target) {
  line.Add(std::move(flag),
           [&target](const std::string& value) { target = ParseInt(value, 1, kMost); });
}

void Parse(std::span<const std::string> arguments, Options& options) {
  CommandLine line("eval stream", "[-m MODEL] [flags]",
                   "Asks a model about an endless text while it goes on, in one session that reads "
                   "every token once. Without --arc, the text is StreamEval's: lines that each "
                   "hold a number, and every so often a query for the line that stands a fixed "
                   "distance back.");
  AddModelFlag(line, options.model);
  AddComputeFlags(line, options.model);
  const eval::StreamEvalOptions defaults;
  line.Group("Lines");
  AddOptionalInt(line,
                 {.names = "--lines",
                  .value = "N",
                  .help = "lines of a stream",
                  .fallback = fmt::format("{}", defaults.lines)},
                 options.lines);
  line.Add({.names = "--distance",
            .value = "A,B,...",
            .help = "how many lines back the line stands that is asked for; each distance has "
                    "streams of its own; may be repeated",
            .fallback = fmt::format("{}", defaults.distances.front())},
           [&](const std::string& value) { ParseDistances(value, options.distances); });
  AddOptionalInt(line,
                 {.names = "--every",
                  .value = "N",
                  .help = "lines from a query to the next",
                  .fallback = fmt::format("{}", defaults.every)},
                 options.every);
  AddOptionalInt(line,
                 {.names = "--samples",
                  .value = "N",
                  .help = "streams for each distance",
                  .fallback = fmt::format("{}", defaults.samples),
                  .is_verbs_own = true},
                 options.samples);
  line.Add({.names = "-s,--seed",
            .value = "N",
            .help = "of the numbers in the lines",
            .fallback = fmt::format("{}", defaults.seed),
            .is_verbs_own = true},
           [&](const std::string& value) {
             options.seed = static_cast<uint64_t>(ParseInt(value, 0, INT64_MAX));
           });
  line.Group("Questions");
  line.Add({.names = "--arc",
            .value = "FOLDER",
            .help = "ask the questions of ARC instead, one after the other: arc_easy.jsonl and "
                    "arc_challenge.jsonl, each a stream. An answer is right if it is the right "
                    "choice to the letter"},
           options.arc);
  line.AddInt(
      {.names = "--limit", .value = "N", .help = "only the first N rows of each file (0: all)"},
      options.limit, 0);
  line.Group("Answers");
  line.Add({.names = "--feed",
            .value = "WHAT",
            .help = "what follows a question in the text: answer (the model's), gold (the right "
                    "one) or nothing. A newline follows in any case",
            .fallback = std::string(FeedName(options.feed)),
            .choices = Names(kFeeds, &std::pair<std::string_view, eval::Feed>::first)},
           [&](const std::string& value) { options.feed = ParseFeed(value); });
  line.AddInt({.names = "--max-new",
               .value = "N",
               .help = "tokens of an answer, which ends at a newline (0: 16 for a line, 64 for "
                       "ARC)"},
              options.max_new_tokens, 0, 1 << 20);
  line.Group("Output");
  line.Add({.names = "--json", .value = "", .help = "print one JSON object"}, options.json);
  line.Add({.names = "--jsonl",
            .value = "FILE",
            .help = "also write every question, one JSON object on a line, when all are answered"},
           options.jsonl);
  line.RefusePlot();
  AddKvFlags(line, options.session, options.model.kv_memory_bytes, /*takes_recompute=*/true);
  line.Parse(arguments);
}

// What can be refused before a file is read.
void Check(Options& options) {
  if (options.arc) {
    if (options.lines || options.every || options.samples || options.seed ||
        !options.distances.empty()) {
      Throw(ErrorKind::kInput,
            "--lines, --distance, --every, --samples and --seed are for lines: they cannot be used "
            "with --arc");
    }
  } else if (options.limit > 0) {
    Throw(ErrorKind::kInput, "--limit is for --arc; lines have --lines");
  }
  std::vector<NamedFile> inputs = {{"-m", options.model.folder}};
  for (const char* name : kArcTasks) {
    if (options.arc) {
      inputs.push_back({"--arc", eval::TaskFile(*options.arc, eval::FindTask(name)).native()});
    }
  }
  CheckResultFiles({{"--jsonl", options.jsonl}}, inputs);
  if (options.max_new_tokens == 0) options.max_new_tokens = options.arc ? 64 : 16;
}

nlohmann::ordered_json Asked(const Options& options) {
  nlohmann::ordered_json json;
  json["model"] = options.model.folder;
  json["kv"] = options.session.kv;
  json["feed"] = FeedName(options.feed);
  json["max_new"] = options.max_new_tokens;
  return json;
}

void AskAboutLines(const Options& options, const Engine& engine, const eval::Reader& reader) {
  eval::StreamEvalOptions lines;
  lines.lines = options.lines.value_or(lines.lines);
  lines.every = options.every.value_or(lines.every);
  lines.samples = options.samples.value_or(lines.samples);
  lines.seed = options.seed.value_or(lines.seed);
  if (!options.distances.empty()) lines.distances = options.distances;
  lines.stream = {.feed = options.feed, .max_new_tokens = options.max_new_tokens};

  std::string rows;
  ProgressLine progress("streaming", ProgressUnit::kTokens);
  lines.on_progress = [&](int64_t done, int64_t total) { progress.Update(done, total); };
  lines.on_query = [&](const eval::StreamQuery& query) {
    if (options.jsonl) rows += QueryJson(query);
  };
  const auto result = eval::MeasureStreamEval(reader, eval::CoderOf(engine), lines);
  progress.Finish();
  SayDropped(result.kv, " in the last stream");

  if (options.jsonl) WriteFile(*options.jsonl, rows);
  if (!options.json) {
    WriteOutput(StreamEvalText(result));
    return;
  }
  auto json = Asked(options);
  json["lines"] = lines.lines;
  json["every"] = lines.every;
  json["samples"] = lines.samples;
  json["seed"] = lines.seed;
  PutStreamEval(json, result);
  WriteJson(json);
}

struct ArcFile {
  std::string task;
  std::vector<eval::Question> questions;
};

std::vector<ArcFile> ReadArc(const std::filesystem::path& folder, int64_t limit) {
  std::vector<ArcFile> files;
  for (const char* name : kArcTasks) {
    const eval::Task& task = eval::FindTask(name);
    const auto path = eval::TaskFile(folder, task);
    if (!IsListed(path)) continue;
    files.push_back({.task = name, .questions = eval::ReadQuestions(path, task)});
    auto& questions = files.back().questions;
    if (limit > 0 && limit < std::ssize(questions)) questions.resize(static_cast<size_t>(limit));
  }
  if (files.empty()) {
    Throw(ErrorKind::kIo, "{}: expected arc_easy.jsonl or arc_challenge.jsonl",
          Quote(folder.native()));
  }
  return files;
}

void AskArc(const Options& options, std::span<const ArcFile> files, const Engine& engine,
            const eval::Reader& reader) {
  const eval::StreamCoder coder = eval::CoderOf(engine);
  std::string rows;
  std::vector<ArcRun> runs;
  for (const ArcFile& file : files) {
    ProgressLine progress("streaming " + file.task, ProgressUnit::kTokens);
    eval::StreamArcOptions arc;
    arc.stream = {.feed = options.feed, .max_new_tokens = options.max_new_tokens};
    arc.on_progress = [&](int64_t done, int64_t total) { progress.Update(done, total); };
    arc.on_answer = [&](const eval::StreamAnswer& answer) {
      if (options.jsonl) rows += AnswerJson(file.task, answer);
    };
    runs.push_back(
        {.task = file.task, .result = eval::MeasureStreamArc(reader, coder, file.questions, arc)});
    progress.Finish();
    SayDropped(runs.back().result.kv, " in " + file.task);
  }
  if (options.jsonl) WriteFile(*options.jsonl, rows);
  if (!options.json) {
    WriteOutput(StreamArcText(runs));
    return;
  }
  auto json = Asked(options);
  json["limit"] = options.limit;
  PutStreamArc(json, runs);
  WriteJson(json);
}

}  // namespace

int EvalStream(std::span<const std::string> arguments) {
  Options options;
  Parse(arguments, options);
  ChooseModel(options.model);
  Check(options);
  std::vector<ArcFile> files;
  if (options.arc) files = ReadArc(*options.arc, options.limit);
  const Engine engine = LoadEngine(options.model, options.session);
  const auto window = eval::RecomputeWindow(options.session.kv);
  Session session = engine.NewSession(
      window ? eval::WindowSession(options.session, *window, /*generates=*/true) : options.session);
  const eval::Reader reader =
      window ? eval::Recompute(session, engine, *window) : eval::Reader(session);
  if (options.arc) {
    AskArc(options, files, engine, reader);
  } else {
    AskAboutLines(options, engine, reader);
  }
  return kExitOk;
}

}  // namespace godwit::cli
