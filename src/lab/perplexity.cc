// godwit perplexity: how well a model predicts texts, under any cache policy.

#include "eval/perplexity.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/quote.h"
#include "cli/options/kv_options.h"
#include "cli/options/model_options.h"
#include "cli/options/recompute_spec.h"
#include "cli/summary.h"
#include "console/exit_code.h"
#include "console/options/parse_value.h"
#include "console/terminal/interrupt.h"
#include "console/terminal/json_output.h"
#include "console/terminal/output.h"
#include "console/terminal/output_file.h"
#include "console/terminal/progress_line.h"
#include "console/terminal/result_files.h"
#include "dist/mpi.h"
#include "eval/recompute.h"
#include "eval/scored_leading_tokens.h"
#include "lab/commands.h"
#include "lab/reports/perplexity_report.h"
#include "lab/scored_files.h"

namespace godwit::lab {
namespace {

struct PerplexityOptions {
  cli::ModelOptions model;
  ScoredFiles text;
  eval::PerplexityOptions eval;
  std::vector<std::string> compare;  // cache policies, instead of the session's
  bool json = false;
  std::optional<std::string> jsonl;
  SessionOptions session;
};

// Splits "dense,sinks:4+60,pin=9" into "dense" and "sinks:4+60,pin=9". A part with "=" is an
// argument of the policy before it.
std::vector<std::string> SplitSpecs(const std::string& list) {
  std::vector<std::string> specs;
  for (const std::string_view part : console::SplitAtCommas(list)) {
    if (!specs.empty() && part.find('=') != std::string_view::npos) {
      specs.back().append(",").append(part);
    } else {
      specs.emplace_back(part);
    }
  }
  return specs;
}

void ParsePerplexity(std::span<const std::string> arguments, PerplexityOptions& options) {
  console::CommandLine line("perplexity", "[-m MODEL] -f FILE [flags]",
                            "Measures how well a model predicts a text of any length: the mean "
                            "negative log likelihood of its tokens, each given the tokens before "
                            "it that --kv keeps, and the perplexity, which is e to that power.");
  cli::AddModelFlag(line, options.model);
  cli::AddComputeFlags(line, options.model);
  cli::AddRankFlags(line, options.model);
  AddScoredFilesFlags(line, options.text);
  line.AddInt({.names = "--max-tokens", .value = "N", .help = "score the first N tokens only"},
              options.eval.max_tokens, 1);
  line.AddInt({.names = "--window",
               .value = "N",
               .help = "cut the text into windows of N tokens without earlier context; BOS or "
                       "other leading tokens of the tokenizer are added to each"},
              options.eval.window_tokens, 1);
  line.AddInt(
      {.names = "--stride",
       .value = "N",
       .help = "begin a window every N tokens; a token is scored in the first window that has it",
       .fallback = "the tokens of --window"},
      options.eval.stride_tokens, 1);
  line.AddInt({.names = "--query-tokens",
               .value = "N",
               .help = "score only the last N tokens of each window, or of the text; for --prefill "
                       "and --kv blocks they are the question, and all before them the context",
               .fallback = "score all tokens, without a context",
               .is_verbs_own = true},
              options.eval.query_tokens, 1);
  line.Group("Output");
  line.AddInt({.names = "--bucket",
               .value = "N",
               .help = "the positions in each line of the table (0: 128, then doubling)"},
              options.eval.bucket_tokens, 0);
  line.Add({.names = "--compare",
            .value = "SPECS",
            .help = "run several values of --kv and print their results side by side, such as "
                    "dense,window:1024,sinks:4+1020,recompute:1024"},
           [&options](const std::string& value) { options.compare = SplitSpecs(value); });
  line.Add({.names = "--json", .value = "", .help = "print one JSON object"}, options.json);
  line.Add({.names = "--jsonl",
            .value = "FILE",
            .help = "also write every scored token, one JSON object on each line; the file appears "
                    "when it is complete"},
           options.jsonl);
  line.RefusePlot();
  cli::AddKvFlags(line, options.session, options.model.kv_memory, /*takes_recompute=*/true);
  cli::AddPrefillFlag(line, options.session);
  line.Exclusive({"--compare", "--kv"});
  line.Parse(arguments);
}

// Refuses what can be refused before a file is read.
void CheckPerplexity(const PerplexityOptions& options, bool compare) {
  if (options.text.files.empty()) {
    Throw(ErrorKind::kInput, "a text is needed: give it with -f FILE");
  }
  if (options.eval.stride_tokens > 0 && options.eval.window_tokens == 0) {
    Throw(ErrorKind::kInput, "--stride is for windows: it needs --window");
  }
  if (options.eval.stride_tokens > options.eval.window_tokens) {
    Throw(ErrorKind::kInput,
          "--stride {} is more than the --window of {}: a part of the text would not be scored",
          options.eval.stride_tokens, options.eval.window_tokens);
  }
  if (!options.session.prefill.empty()) {
    if (options.eval.query_tokens == 0) {
      Throw(ErrorKind::kInput,
            "--prefill reads a context, and without --query-tokens there is none: add "
            "--query-tokens N to score the last N tokens only");
    }
    for (const std::string& kv : options.compare) {
      if (!cli::RecomputeWindow(kv)) continue;
      Throw(ErrorKind::kInput,
            "--prefill cannot be used with {}, which processes all of a text again in its own way",
            kv);
    }
  }
  if (options.jsonl && compare) {
    Throw(ErrorKind::kInput, "--jsonl is for one run: it cannot be used with --compare");
  }
  console::CheckResultFiles({{"--jsonl", options.jsonl}},
                            Inputs(options.text, {{"-m", options.model.folder}}));
}

// A file with one line for each token.
class NllFile {
 public:
  explicit NllFile(const std::string& path) : file_(path) {}

  void Add(const eval::ScoredToken& scored) {
    fmt::format_to(std::back_inserter(lines_),
                   "{{\"text\":{},\"position\":{},\"token\":{},\"nll\":{}}}\n", scored.text,
                   scored.position, scored.token,
                   std::isfinite(scored.nll) ? fmt::format("{}", scored.nll) : "null");
    if (lines_.size() >= kBuffer) Flush();
  }

  void Commit() {
    Flush();
    file_.Commit();
  }

 private:
  static constexpr size_t kBuffer = 1 << 16;

  void Flush() {
    file_.Write(std::as_bytes(std::span(lines_)));
    lines_.clear();
  }

  console::OutputFile file_;
  std::string lines_;
};

// Measures under one of the policies that --kv and --compare name.
eval::PerplexityResult MeasureWith(const Engine& engine, const std::string& kv,
                                   std::span<const std::vector<int32_t>> texts,
                                   PerplexityOptions& options) {
  SessionOptions asked = options.session;
  asked.kv = kv;
  const auto window = cli::RecomputeWindow(kv);
  Session session = engine.NewSession(window ? eval::WindowSession(asked, *window) : asked);
  const eval::Reader reader =
      window ? eval::Recompute(session, engine, *window) : eval::Reader(session);
  std::optional<NllFile> nll;
  if (options.jsonl) nll.emplace(*options.jsonl);
  console::ProgressLine progress("scoring", console::ProgressUnit::kTokens);
  double sum = 0;
  options.eval.on_token = [&](const eval::ScoredToken& scored) {
    sum += scored.nll;
    if (nll) nll->Add(scored);
  };
  const auto so_far = [&](int64_t done) {
    return fmt::format("{}: perplexity {}", kv,
                       FormatPerplexity(std::exp(sum / static_cast<double>(done))));
  };
  options.eval.on_progress = [&](int64_t done, int64_t total) {
    progress.Update(done, total);
    progress.Note(so_far(done));
  };
  const console::CancelOnInterrupt cancel(session, /*presses_to_exit=*/1);
  auto result = MeasurePerplexity(reader, texts, options.eval);
  if (options.compare.size() > 1) progress.SayResult(so_far(result.tokens));
  if (nll) nll->Commit();
  return result;
}

}  // namespace

int Perplexity(std::span<const std::string> arguments) {
  PerplexityOptions options;
  ParsePerplexity(arguments, options);
  cli::ChooseModel(options.model);
  const bool compare = !options.compare.empty();
  if (!compare) options.compare = {options.session.kv};
  if (MpiRank() > 0) {  // rank 0 alone has the text
    cli::LoadEngine(options.model, options.session, options.compare).FollowRankZero();
    return console::kExitOk;
  }
  CheckPerplexity(options, compare);
  auto files = ReadFiles(options.text);

  const Engine engine = cli::LoadEngine(options.model, options.session, options.compare);
  options.eval.frame = eval::ScoredLeadingTokens(engine);
  const auto texts = TokenizeFiles(engine, std::move(files), options.text.reset,
                                   options.eval.query_tokens > 0 ? -1 : options.eval.max_tokens);
  std::vector<eval::PerplexityResult> results;
  for (const std::string& spec : options.compare) {
    results.push_back(MeasureWith(engine, spec, texts, options));
    cli::SayDropped(results.back().kv, options.eval.window_tokens > 0 ? " in the longest window"
                                       : texts.size() > 1             ? " in the longest text"
                                                                      : "");
  }

  if (!options.json) {
    console::WriteOutput(compare ? ComparisonText(results) : PerplexityText(results.front()));
    return console::kExitOk;
  }
  nlohmann::ordered_json json{{"model", options.model.folder}, {"texts", options.text.files}};
  if (compare) {
    for (const auto& result : results) {
      json["compare"].push_back(PerplexityJson(result, options.eval));
    }
  } else {
    json.update(PerplexityJson(results.front(), options.eval));
  }
  console::WriteJson(json);
  return console::kExitOk;
}

}  // namespace godwit::lab
