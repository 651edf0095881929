// godwit eval stream: questions about an endless text while it continues, under any cache policy.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "cli/options/recompute_spec.h"
#include "cli/summary.h"
#include "console/options/parse_value.h"
#include "console/terminal/format.h"
#include "console/terminal/output.h"
#include "console/terminal/progress_line.h"
#include "eval/recompute.h"
#include "eval/stream_arc.h"
#include "eval/stream_eval.h"
#include "eval/tasks.h"
#include "lab/answer_file.h"
#include "lab/commands.h"
#include "lab/compared_options.h"
#include "lab/reports/comparison_report.h"

namespace godwit::lab {
namespace {

constexpr int64_t kMost = int64_t{1} << 32;
constexpr const char* kArcTasks[] = {"arc_easy", "arc_challenge"};

struct StreamEvalOptions : ComparedOptions {
  // Fields for the task of lines. A field that is not given keeps the default of StreamEvalOptions.
  std::optional<int64_t> lines, every, samples;
  std::vector<int64_t> distances;
  // Fields for ARC.
  std::optional<std::string> arc;
  int64_t limit = 0;  // rows of each file; 0: all
  eval::Feed feed = eval::Feed::kAnswer;
  int64_t max_new_tokens = 0;  // 0: 16 for lines, 64 for ARC
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
  for (const std::string_view part : console::SplitAtCommas(list)) {
    const int64_t distance = console::ParseInt(part, 0, kMost);
    if (std::find(distances.begin(), distances.end(), distance) != distances.end()) {
      Throw(ErrorKind::kInput, "the distance {} is named twice", distance);
    }
    distances.push_back(distance);
  }
}

void AddOptionalInt(console::CommandLine& line, console::Flag flag,
                    std::optional<int64_t>& target) {
  line.Add(std::move(flag),
           [&target](const std::string& value) { target = console::ParseInt(value, 1, kMost); });
}

void ParseStreamEval(std::span<const std::string> arguments, StreamEvalOptions& options) {
  console::CommandLine line(
      "eval stream", "[-m MODEL] [flags]",
      std::string("Asks a model questions within an endless text, in one session that reads every "
                  "token once. Without --arc, the text is that of StreamEval: every line holds a "
                  "number, and at intervals a query asks for the line at a fixed distance back.") +
          kComparesPolicies);
  cli::AddModelFlag(line, options.model);
  cli::AddComputeFlags(line, options.model);
  const eval::StreamEvalOptions defaults;
  line.Group("Lines");
  AddOptionalInt(line,
                 {.names = "--lines",
                  .value = "N",
                  .help = "the lines of a stream",
                  .fallback = fmt::format("{}", defaults.lines)},
                 options.lines);
  line.Add({.names = "--distance",
            .value = "A,B,...",
            .help = "the distance in lines from a query back to the line that it asks for; each "
                    "distance has its own streams; may be repeated",
            .fallback = fmt::format("{}", defaults.distances.front()),
            .repeats = true},
           [&](const std::string& value) { ParseDistances(value, options.distances); });
  AddOptionalInt(line,
                 {.names = "--every",
                  .value = "N",
                  .help = "the lines from one query to the next",
                  .fallback = fmt::format("{}", defaults.every)},
                 options.every);
  AddOptionalInt(line,
                 {.names = "-n,--samples",
                  .value = "N",
                  .help = "the streams for each distance",
                  .fallback = fmt::format("{}", defaults.samples),
                  .is_verbs_own = true},
                 options.samples);
  AddSeedFlag(line, options, "the seed of the numbers in lines, and of confidence intervals");
  line.Group("Questions");
  line.Add(
      {.names = "--arc",
       .value = "FOLDER",
       .help =
           "ask the questions of arc_easy.jsonl and arc_challenge.jsonl in FOLDER instead, each "
           "file as one stream. An answer is right if it equals the right choice to the letter"},
      options.arc);
  line.AddInt({.names = "--limit",
               .value = "N",
               .help = "take only the first N rows of each file (0: all)"},
              options.limit, 0);
  line.Group("Answers");
  line.Add({.names = "--feed",
            .value = "WHAT",
            .help = "the text after a question: answer (the model's), gold (the right one) or "
                    "nothing. A newline always follows",
            .fallback = std::string(FeedName(options.feed)),
            .choices = Names(kFeeds, &std::pair<std::string_view, eval::Feed>::first)},
           [&](const std::string& value) { options.feed = ParseFeed(value); });
  line.AddInt(
      {.names = "--max-new",
       .value = "N",
       .help =
           "the most tokens of an answer, which ends at a newline (0: 16 for a line, 64 for ARC)"},
      options.max_new_tokens, 0, 1 << 20);
  AddComparedFlags(line, options, "the text up to the Nth question, with right answers,",
                   "the question", /*takes_recompute=*/true);
  line.Parse(arguments);
}

// Refuses what can be refused before a file is read.
void CheckStreamEval(StreamEvalOptions& options) {
  if (options.arc) {
    if (options.lines || options.every || options.samples || !options.distances.empty()) {
      Throw(ErrorKind::kInput,
            "--lines, --distance, --every and --samples are for StreamEval's lines: they cannot be "
            "used with --arc");
    }
  } else if (options.limit > 0) {
    Throw(ErrorKind::kInput, "--limit needs --arc; for lines use --lines");
  }
  std::vector<console::NamedFile> inputs;
  for (const char* name : kArcTasks) {
    if (options.arc) {
      inputs.push_back({"--arc", eval::TaskFile(*options.arc, eval::FindTask(name)).native()});
    }
  }
  FinishCompared(options, std::move(inputs));
  for (const std::string& kv : options.kvs) {
    if (cli::RecomputeWindow(kv) && !options.session.prefill.empty()) {
      Throw(ErrorKind::kInput,
            "--prefill cannot be used with {}, which processes all of a text again in its own way",
            kv);
    }
  }
  if (options.max_new_tokens == 0) options.max_new_tokens = options.arc ? 64 : 16;
}

std::string SettingsText(const StreamEvalOptions& options) {
  return fmt::format("{}, fed {}, answers of {}",
                     SettingsText(static_cast<const ComparedOptions&>(options)),
                     FeedName(options.feed), console::Plural(options.max_new_tokens, "token"));
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
    if (limit > 0 && limit < std::ssize(questions)) questions.resize(limit);
  }
  if (files.empty()) {
    Throw(ErrorKind::kIo, "{}: expected arc_easy.jsonl or arc_challenge.jsonl",
          Quote(folder.native()));
  }
  return files;
}

eval::StreamEvalOptions LinesOf(const StreamEvalOptions& options) {
  eval::StreamEvalOptions lines;
  lines.lines = options.lines.value_or(lines.lines);
  lines.every = options.every.value_or(lines.every);
  lines.samples = options.samples.value_or(lines.samples);
  lines.seed = options.seed;
  if (!options.distances.empty()) lines.distances = options.distances;
  return lines;
}

class StreamRun {
 public:
  StreamRun(const StreamEvalOptions& options, const Engine& engine, std::span<const ArcFile> files)
      : options_(options),
        engine_(engine),
        coder_(eval::CoderOf(engine)),
        files_(files),
        lines_(LinesOf(options)),
        stream_{.feed = options.feed,
                .max_new_tokens = options.max_new_tokens,
                .query_tokens = options.query_tokens},
        comparison_(options.kvs, options.seed) {}

  // Shows the text of the stream as if every answer were right.
  void Show() {
    std::vector<int32_t> text;
    eval::Reader reader;
    reader.generate = [&](std::span<const int32_t> prompt, const GenerateOptions&) {
      text.assign(prompt.begin(), prompt.end());
      return GenerateResult();
    };
    reader.kv = [] { return KvReport(); };
    reader.limit_tokens = [] { return INT64_MAX; };
    stream_.feed = eval::Feed::kGold;
    if (options_.arc) {
      const std::span questions = files_.front().questions;
      const auto shown = std::min(std::ssize(questions), options_.show);
      (void)eval::MeasureStreamArc(reader, coder_, questions.first(shown), {.stream = stream_});
    } else {
      lines_.stream = stream_;
      lines_.samples = 1;
      lines_.distances.resize(1);
      const int64_t queries = std::min(options_.show, lines_.lines);
      lines_.lines = std::min(lines_.lines, lines_.distances[0] + (queries - 1) * lines_.every + 1);
      (void)eval::MeasureStreamEval(reader, coder_, lines_);
    }
    console::WriteOutput(engine_.Detokenize(text) + "\n");
  }

  void Ask() {
    AnswerFile answers(options_.output, SettingsText(options_),
                       options_.arc ? std::vector<std::string>{"task", "row"}
                                    : std::vector<std::string>{"sample", "distance", "line"},
                       {{"fed", nlohmann::json::array()}, {"score", 0}});
    answers_ = &answers;
    for (kv_ = 0; kv_ < options_.kvs.size(); ++kv_) {
      const std::string& kv = options_.kvs[kv_];
      const auto window = cli::RecomputeWindow(kv);
      Session session = window ? engine_.NewSession(eval::WindowSession(options_.session, *window,
                                                                        /*generates=*/true))
                               : NewSession(engine_, options_, kv);
      const eval::Reader reader =
          window ? eval::Recompute(session, engine_, *window) : eval::Reader(session);
      if (options_.arc) {
        for (const ArcFile& file : files_) AskArc(file, reader);
      } else {
        AskAboutLines(reader);
      }
    }
  }

  std::string Text() const { return comparison_.Text(console::TableColumns()); }

  nlohmann::ordered_json Report() const {
    nlohmann::ordered_json json{{"model", options_.model.folder},
                                {"suite", "stream"},
                                {"how", SettingsText(options_)},
                                {"seed", options_.seed},
                                {"feed", FeedName(options_.feed)}};
    if (options_.arc) {
      json["limit"] = options_.limit;
    } else {
      json["lines"] = lines_.lines;
      json["every"] = lines_.every;
      json["samples"] = lines_.samples;
    }
    json["cells"] = comparison_.Json();
    return json;
  }

 private:
  Asked AskedOf(const eval::StreamTurn& turn, nlohmann::ordered_json sample) const {
    return {.sample = std::move(sample),
            .kv = options_.kvs[kv_],
            .prompt = fmt::format("{:016x}", turn.fingerprint)};
  }

  bool Recall(eval::StreamTurn& turn, const Asked& asked) const {
    const auto* known = answers_->Find(asked);
    if (known == nullptr) return false;
    known->at("fed").get_to(turn.fed);
    turn.right = known->at("score").get<double>() > 0;
    return true;
  }

  void Take(const eval::StreamTurn& turn, const Asked& asked, ComparedRow& row,
            nlohmann::ordered_json answer = nlohmann::ordered_json::object()) {
    const double score = turn.right ? 1 : 0;
    row.scores[kv_].push_back(score);
    if (turn.known) return;
    answer["position"] = turn.position;
    answer["expected"] = turn.expected;
    answer["answer"] = turn.answer;
    answer["fed"] = turn.fed;
    answer["score"] = score;
    answers_->Append(asked, answer);
  }

  void AskAboutLines(const eval::Reader& reader) {
    console::ProgressLine progress("streaming", console::ProgressUnit::kTokens);
    const auto asked = [&](const eval::StreamQuery& query) {
      return AskedOf(
          query,
          {{"sample", query.sample}, {"distance", query.distance_lines}, {"line", query.line}});
    };
    eval::StreamEvalOptions lines = lines_;
    lines.stream = stream_;
    lines.on_progress = [&](int64_t done, int64_t total) { progress.Update(done, total); };
    lines.recall = [&](eval::StreamQuery& query) { return Recall(query, asked(query)); };
    lines.on_query = [&](const eval::StreamQuery& query) {
      Take(query, asked(query), RowOf(query.distance_lines),
           {{"distance_tokens", query.distance_tokens}});
      progress.Note(comparison_.SoFar(RowOf(query.distance_lines)));
    };
    for (const int64_t distance : lines.distances) RowOf(distance);
    const auto result = eval::MeasureStreamEval(reader, coder_, lines);
    for (const int64_t distance : lines.distances) {
      progress.SayResult(comparison_.SoFar(RowOf(distance)));
    }
    progress.Finish();
    cli::SayDropped(result.kv, " in the last stream");
    // Distances in tokens of the first policy: under others, answers may be longer.
    if (kv_ > 0) return;
    for (const eval::DistanceResult& one : result.distances) {
      RowOf(one.distance_lines).about["tokens"] = one.distance_tokens;
    }
  }

  ComparedRow& RowOf(int64_t distance) {
    ComparedRow*& row = rows_[distance];
    if (row == nullptr) {
      row = &comparison_.Row({.about = {{"distance", distance}, {"tokens", nullptr}}});
    }
    return *row;
  }

  void AskArc(const ArcFile& file, const eval::Reader& reader) {
    console::ProgressLine progress("streaming " + file.task, console::ProgressUnit::kTokens);
    ComparedRow& row = comparison_.Row({.about = {{"task", file.task}}});
    const auto asked = [&](const eval::StreamAnswer& answer) {
      return AskedOf(answer, {{"task", file.task}, {"row", answer.row}});
    };
    eval::StreamArcOptions arc;
    arc.stream = stream_;
    arc.on_progress = [&](int64_t done, int64_t total) { progress.Update(done, total); };
    arc.recall = [&](eval::StreamAnswer& answer) { return Recall(answer, asked(answer)); };
    arc.on_answer = [&](const eval::StreamAnswer& answer) {
      Take(answer, asked(answer), row);
      progress.Note(comparison_.SoFar(row));
    };
    const auto result = eval::MeasureStreamArc(reader, coder_, file.questions, arc);
    progress.SayResult(comparison_.SoFar(row));
    progress.Finish();
    cli::SayDropped(result.kv, " in " + file.task);
  }

  const StreamEvalOptions& options_;
  const Engine& engine_;
  const eval::StreamCoder coder_;
  const std::span<const ArcFile> files_;
  eval::StreamEvalOptions lines_;
  eval::Stream::Options stream_;
  PolicyComparison comparison_;
  std::map<int64_t, ComparedRow*> rows_;  // by distance
  AnswerFile* answers_ = nullptr;         // while the session asks
  size_t kv_ = 0;                         // the policy that is measured now
};

}  // namespace

int EvalStream(std::span<const std::string> arguments) {
  StreamEvalOptions options;
  ParseStreamEval(arguments, options);
  CheckStreamEval(options);
  std::vector<ArcFile> files;
  if (options.arc) files = ReadArc(*options.arc, options.limit);
  const Engine engine = cli::LoadEngine(options.model, options.session, options.kvs);
  StreamRun run(options, engine, files);
  return ShowOrAsk(run, options);
}

}  // namespace godwit::lab
