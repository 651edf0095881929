// godwit eval text: how much a text repeats itself, and what guesses of its tokens are worth.

#include <charconv>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attention/make_policy.h"
#include "base/cores.h"
#include "base/error.h"
#include "base/quote.h"
#include "checkpoint/model_folder.h"
#include "cli/exit_code.h"
#include "cli/options/model_options.h"
#include "cli/options/text_input.h"
#include "cli/terminal/json_output.h"
#include "cli/terminal/output.h"
#include "cli/terminal/table.h"
#include "cli/verbs.h"
#include "engine/make_drafts.h"
#include "engine/storage_types.h"
#include "eval/distinct.h"
#include "generate/replay_drafts.h"
#include "generate/suffix_drafts.h"
#include "kernels/dispatch.h"
#include "model/loader.h"
#include "tensor/workspace.h"

namespace godwit::cli {
namespace {

constexpr int64_t kMostDistinct = 4;

struct Options {
  ModelOptions model;
  TextInput text;
  std::optional<StepCosts> costs;
  std::string draft;  // empty: of what the text had before, without a model
  std::string kv = "dense";
  int64_t prompt_tokens = 1;
  bool json = false;
};

double ParseMs(std::string_view text) {
  const double ms = ParseFloat(std::string(text));
  if (!(ms > 0 && ms < 1e9)) {
    Throw(ErrorKind::kInput, "{} are no milliseconds of a step", Quote(text));
  }
  return ms;
}

// "1:22.2,8:24"
StepCosts ParseStepMs(std::string_view list) {
  StepCosts costs;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.size(), list.find(',', begin));
    const std::string_view item = list.substr(begin, end - begin);
    begin = end + 1;
    const size_t colon = item.find(':');
    if (colon == std::string_view::npos) {
      Throw(ErrorKind::kInput, "{} is not ROWS:MS, such as 8:24.5", Quote(item));
    }
    costs.Record(ParseInt(std::string(item.substr(0, colon)), 1, StepCosts::kMostRows),
                 ParseMs(item.substr(colon + 1)));
  }
  if (costs.Ms(1) == 0) {
    Throw(ErrorKind::kInput, "{} says nothing of a step of one row: add 1:MS", Quote(list));
  }
  return costs;
}

Options Parse(std::span<const std::string> arguments) {
  Options options;
  CommandLine line("eval text", "[-m MODEL] [-p TEXT | -f FILE] [flags]",
                   "Says how much a text repeats itself: Distinct-n, the different runs of n "
                   "tokens as a share of all. Of the model only the tokenizer is read, but with "
                   "--draft.");
  AddModelFlag(line, options.model);
  AddComputeFlags(line, options.model);
  line.Group("Text");
  AddTextFlags(line, options.text, "the text");
  line.Group("Speculation");
  line.Add({.names = "--step-ms",
            .value = "ROWS:MS,...",
            .help = "also count what --draft ngram would save if a model had written the text, in "
                    "steps that take so long, as 1:22.2,8:24.2 (godwit bench -p 1,8 says)"},
           [&options](const std::string& value) { options.costs = ParseStepMs(value); });
  line.Add({.names = "--draft",
            .value = "SOURCES",
            .help = "then by these sources, as run has them: the model reads the text along",
            .is_verbs_own = true},
           options.draft);
  line.Add({.names = "--kv", .value = "SPEC", .help = "as it sees the text by this policy"},
           options.kv);
  line.AddInt({.names = "--prompt-tokens",
               .value = "N",
               .help = "the first N tokens are the prompt, and were not written",
               .fallback = "1"},
              options.prompt_tokens, 1);
  line.Group("Output");
  line.Add({.names = "--json", .value = "", .help = "print one JSON object"}, options.json);
  line.Parse(arguments);
  if (!options.draft.empty() && !options.costs) {
    Throw(ErrorKind::kInput, "--draft counts what guesses save: it needs --step-ms");
  }
  return options;
}

Replay ReplayWithoutModel(std::span<const int32_t> tokens, const Options& options) {
  std::vector<std::unique_ptr<DraftSource>> sources;
  sources.push_back(std::make_unique<SuffixDrafts>());
  return ReplayDrafts(tokens, options.prompt_tokens, *options.costs, std::move(sources));
}

Replay ReplayWithModel(const ModelFolder& model, std::span<const int32_t> tokens,
                       const Options& options) {
  RequireTokenIds(model.spec(), tokens);
  WarnAboutThreads(options.model.threads);
  ThreadPool pool(ThreadsFor(options.model.threads));
  Workspace workspace;
  const Exec exec{.pool = pool,
                  .kernels = *kernels::SelectIsa(options.model.isa).table,
                  .workspace = workspace};
  const auto decoder =
      LoadModel(model, pool, {}, ParseWeightType(options.model.weights), PackedCopy(options.model));
  const DraftParts parts = {
      .vocab = decoder->vocab_size(),
      .heads =
          [&] {
            return LoadDraftHeads(model.path(), *decoder, decoder->StatesDigest(), pool,
                                  decoder->weight_types().layers);
          },
      .partial = [](std::string_view) -> std::unique_ptr<DraftSource> {
        Throw(ErrorKind::kUnsupported,
              "what --draft partial guesses is known where a text is written, and not from the "
              "text: leave it out, or see what run --json counts");
      }};
  auto sources = MakeDrafts(options.draft, parts);
  const auto context = std::ssize(tokens);
  ReadAlong along(*decoder, exec,
                  MakeTextCache(Geometry(model.spec()), {.spec = options.kv, .context = context}),
                  tokens);
  return ReplayDrafts(tokens, options.prompt_tokens, *options.costs, std::move(sources), &along);
}

nlohmann::ordered_json ToJson(int64_t tokens, const std::vector<double>& distinct, double average,
                              const std::optional<Replay>& replay) {
  nlohmann::ordered_json json{{"tokens", tokens}, {"distinct", distinct}, {"average", average}};
  if (replay) {
    json["replay"] = {{"tokens", replay->tokens},
                      {"steps", replay->steps},
                      {"guesses", replay->guesses},
                      {"ms", replay->ms},
                      {"plain_ms", replay->plain_ms}};
    for (const auto& [source, guesses] : replay->accepted) {
      json["replay"]["sources"][std::string(source)] = guesses;
    }
  }
  return json;
}

std::string ToText(int64_t tokens, const std::vector<double>& distinct, double average,
                   const std::optional<Replay>& replay) {
  Table facts = Facts();
  facts.Add("tokens", tokens);
  for (size_t n = 0; n < distinct.size(); ++n) {
    facts.Add(fmt::format("distinct-{}", n + 1), fmt::format("{:.3f}", distinct[n]));
  }
  facts.Add("average", fmt::format("{:.3f}", average));
  if (replay) {
    const auto steps = static_cast<double>(replay->steps);
    facts.Add("drafts", fmt::format("{:.2f} tokens a step, of {:.1f} rows: {:.2f} x plain decoding",
                                    static_cast<double>(replay->tokens) / steps,
                                    1 + static_cast<double>(replay->guesses) / steps,
                                    replay->plain_ms / replay->ms));
  }
  return facts.Take();
}

}  // namespace

int EvalText(std::span<const std::string> arguments) {
  const Options options = Parse(arguments);
  ModelOptions model = options.model;
  ChooseModel(model);
  const ModelFolder folder(model.folder);
  folder.RequireTokenizer();
  const auto tokens =
      folder.tokenizer()->Encode(RequireText(options.text), /*add_special_tokens=*/false);
  if (std::ssize(tokens) <= options.prompt_tokens) {
    Throw(ErrorKind::kInput, "the text has {} tokens, and nothing behind a prompt of {}",
          tokens.size(), options.prompt_tokens);
  }
  const auto written =
      std::span<const int32_t>(tokens).subspan(static_cast<size_t>(options.prompt_tokens));
  std::vector<double> distinct;
  double average = 0;
  for (int64_t n = 1; n <= kMostDistinct; ++n) {
    distinct.push_back(eval::DistinctShare(written, n));
    average += distinct.back() / kMostDistinct;
  }
  std::optional<Replay> replay;
  if (options.costs) {
    replay = options.draft.empty() ? ReplayWithoutModel(tokens, options)
                                   : ReplayWithModel(folder, tokens, options);
  }
  if (options.json) {
    WriteJson(ToJson(std::ssize(written), distinct, average, replay));
  } else {
    WriteOutput(ToText(std::ssize(written), distinct, average, replay));
  }
  return kExitOk;
}

}  // namespace godwit::cli
