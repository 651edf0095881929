// godwit perplexity: how well a model predicts texts, under any cache policy.

#include "eval/perplexity.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/machine_memory.h"
#include "base/quote.h"
#include "cli/exit_code.h"
#include "cli/options/kv_options.h"
#include "cli/options/model_options.h"
#include "cli/options/text_input.h"
#include "cli/terminal/format.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/output.h"
#include "cli/terminal/output_file.h"
#include "cli/terminal/progress_line.h"
#include "cli/verbs.h"
#include "eval/frame.h"

namespace godwit::cli {
namespace {

struct Options {
  ModelOptions model;
  std::vector<std::string> files;
  bool reset = false;
  eval::PerplexityOptions eval;
  bool json = false;
  std::optional<std::string> nll;
  SessionOptions session;
};

bool Parse(std::span<const std::string> arguments, Options& options) {
  CommandLine line("perplexity", "-m FOLDER -f FILE [flags]",
                   "Says how well a model predicts a text of any length: the mean negative log "
                   "likelihood of its tokens, each given what --kv keeps of those before it, and "
                   "the perplexity, its exponential.");
  AddModelFlag(line, options.model);
  AddComputeFlags(line, options.model);
  line.Group("Text");
  line.Add({.names = "-f,--file",
            .value = "FILE",
            .help = "the text (-: standard input); may be repeated: files are one text, in order"},
           options.files);
  line.Add({.names = "--reset", .value = "", .help = "each file is a text of its own"},
           options.reset);
  line.AddInt({.names = "--tokens", .value = "N", .help = "score the first N tokens only"},
              options.eval.max_tokens, 1);
  line.AddInt({.names = "--window",
               .value = "N",
               .help = "cut the text into windows of N tokens, each read from nothing; what frames "
                       "a text (a BOS) comes in front of each, besides the N"},
              options.eval.window_tokens, 1);
  line.AddInt({.names = "--stride",
               .value = "N",
               .help = "a window begins N tokens after the last (as many as --window); a token is "
                       "scored in the first window that has it"},
              options.eval.stride_tokens, 1);
  line.Group("Output");
  line.AddInt({.names = "--bucket",
               .value = "N",
               .help = "positions in each line of the table (0: 128, then doubling)"},
              options.eval.bucket_tokens, 0);
  line.Add({.names = "--json", .value = "", .help = "print one JSON object"}, options.json);
  line.Add({.names = "--nll",
            .value = "FILE",
            .help = "also write every scored token, one JSON object on a line; the file appears "
                    "when it is complete"},
           options.nll);
  AddKvFlags(line, options.session);
  return line.Parse(arguments);
}

// What can be refused before a file is read.
void Check(const Options& options) {
  if (options.files.empty()) {
    Throw(ErrorKind::kInput, "a text is needed: give it with -f FILE");
  }
  if (options.eval.stride_tokens > 0 && options.eval.window_tokens == 0) {
    Throw(ErrorKind::kInput, "--stride is for windows: it needs --window");
  }
  if (options.eval.stride_tokens > options.eval.window_tokens) {
    Throw(ErrorKind::kInput,
          "--stride: {} is more than the --window of {}: a part of the text would not be scored",
          options.eval.stride_tokens, options.eval.window_tokens);
  }
  if (options.nll == "-") {
    Throw(ErrorKind::kInput, "--nll: expected a file, since the result goes to standard output");
  }
}

std::vector<std::string> ReadFiles(const std::vector<std::string>& files) {
  std::vector<std::string> texts;
  for (const std::string& file : files) {
    texts.push_back(ReadInputFile(file));
    if (texts.back().empty()) {
      Throw(ErrorKind::kInput, "{} is empty: there is nothing to score",
            file == "-" ? "standard input" : file);
    }
  }
  return texts;
}

// One list of ids for every text that begins anew. Gives the memory of the texts back on its way.
std::vector<std::vector<int32_t>> TokenizeFiles(const Engine& engine,
                                                std::vector<std::string> files, bool reset) {
  std::vector<std::vector<int32_t>> texts(1);
  for (std::string& file : files) {
    auto tokens = engine.Tokenize(std::exchange(file, ""), /*add_special=*/false);
    if (texts.back().empty()) {
      texts.back() = std::move(tokens);
    } else if (reset) {
      texts.push_back(std::move(tokens));
    } else {
      texts.back().insert(texts.back().end(), tokens.begin(), tokens.end());
    }
  }
  return texts;
}

// One line for every token.
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

  OutputFile file_;
  std::string lines_;
};

eval::PerplexityResult Measure(Session& session, std::span<const std::vector<int32_t>> texts,
                               Options& options) {
  std::optional<NllFile> nll;
  if (options.nll) {
    nll.emplace(*options.nll);
    options.eval.on_token = [&](const eval::ScoredToken& scored) { nll->Add(scored); };
  }
  ProgressLine progress("scoring", ProgressUnit::kTokens);
  options.eval.on_progress = [&](int64_t done, int64_t total) { progress.Update(done, total); };
  // Nothing has to be put in order before leaving, but for a file that is half written.
  const CancelOnInterrupt cancel(session, /*presses_to_exit=*/nll ? 2 : 1);
  auto result = MeasurePerplexity(session, texts, options.eval);
  if (nll) nll->Commit();
  return result;
}

double TokensPerSecond(const eval::PerplexityResult& result) {
  return result.elapsed_ms > 0 ? 1000 * static_cast<double>(result.tokens) / result.elapsed_ms : 0;
}

// A model that fails has perplexities of any size.
std::string FormatPerplexity(double perplexity) {
  return perplexity < 1e6 ? fmt::format("{:.3f}", perplexity) : fmt::format("{:.3e}", perplexity);
}

std::string ToText(const eval::PerplexityResult& result) {
  std::string text = fmt::format(
      "perplexity  {} ({:.4f} nats per token)\n"
      "scored      {}, {:.2f} s ({} tokens/s)\n"
      "kv          {}: {} of {} kept, {}\n\n"
      "{:<19}  {:>9}  {:>8}  {:>10}\n",
      FormatPerplexity(result.perplexity), result.nll, Plural(result.tokens, "token"),
      result.elapsed_ms / 1000, FormatRate(TokensPerSecond(result)), result.kv.policy,
      result.kv.kept, Plural(result.kv.seen, "token"), FormatBytes(result.kv.bytes), "positions",
      "tokens", "nll", "perplexity");
  for (const eval::Bucket& bucket : result.buckets) {
    text += fmt::format("{:<19}  {:>9}  {:>8.4f}  {:>10}\n",
                        fmt::format("{} to {}", bucket.begin, bucket.end - 1), bucket.tokens,
                        bucket.nll, FormatPerplexity(std::exp(bucket.nll)));
  }
  return text;
}

std::string ToJson(const eval::PerplexityResult& result, const Options& options) {
  nlohmann::ordered_json json;
  json["perplexity"] = result.perplexity;
  json["nll"] = result.nll;
  json["tokens"] = result.tokens;
  json["tokens_per_second"] = TokensPerSecond(result);
  json["elapsed_ms"] = result.elapsed_ms;
  json["kv"] = {{"policy", result.kv.policy},
                {"seen", result.kv.seen},
                {"kept", result.kv.kept},
                {"bytes", result.kv.bytes}};
  json["window"] = nullptr;
  json["stride"] = nullptr;
  if (const int64_t window = options.eval.window_tokens; window > 0) {
    json["window"] = window;
    json["stride"] = options.eval.stride_tokens > 0 ? options.eval.stride_tokens : window;
  }
  json["buckets"] = nlohmann::ordered_json::array();
  for (const eval::Bucket& bucket : result.buckets) {
    json["buckets"].push_back({{"begin", bucket.begin},
                               {"end", bucket.end},
                               {"nll", bucket.nll},
                               {"perplexity", std::exp(bucket.nll)},
                               {"tokens", bucket.tokens}});
  }
  return json.dump() + "\n";
}

}  // namespace

int Perplexity(std::span<const std::string> arguments) {
  Options options;
  if (!Parse(arguments, options)) return kExitOk;
  Check(options);
  ChooseModel(options.model);
  auto files = ReadFiles(options.files);

  const Engine engine = LoadEngine(options.model, options.session);
  Session session = engine.NewSession(options.session);
  options.eval.frame = eval::TextFrame(engine);
  const auto texts = TokenizeFiles(engine, std::move(files), options.reset);
  const auto result = Measure(session, texts, options);
  WriteOutput(options.json ? ToJson(result, options) : ToText(result));
  return kExitOk;
}

}  // namespace godwit::cli
