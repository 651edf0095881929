#include "lab/text_replays.h"

#include <map>
#include <utility>

#include "attention/make_policy.h"
#include "base/cores.h"
#include "base/error.h"
#include "base/quote.h"
#include "cli/options/sampling_options.h"
#include "console/options/parse_value.h"
#include "engine/draft_shape.h"
#include "engine/make_drafts.h"
#include "engine/make_partial_drafts.h"
#include "generate/suffix_drafts.h"
#include "kernels/dispatch.h"
#include "lab/model_run.h"
#include "model/loader.h"
#include "tensor/workspace.h"

namespace godwit::lab {
namespace {

double ParseMs(std::string_view text) {
  const double ms = console::ParseFloat(text);
  if (!(ms > 0 && ms < 1e9)) {
    Throw(ErrorKind::kInput, "expected milliseconds above 0, found {}", Quote(text));
  }
  return ms;
}

// Calls see(key, value) for each pair of "key:value,key:value".
template <typename See>
void ForEachPair(std::string_view list, std::string_view example, const See& see) {
  for (const std::string_view item : console::SplitAtCommas(list)) {
    const size_t at = item.find(':');
    if (at == std::string_view::npos) {
      Throw(ErrorKind::kInput, "{} is not {}", Quote(item), example);
    }
    see(item.substr(0, at), item.substr(at + 1));
  }
}

// Parses "1:22.2,8:24".
StepCosts ParseStepMs(std::string_view list) {
  std::map<int64_t, double> ms_of_rows;
  ForEachPair(list, "ROWS:MS, such as 8:24.5", [&](auto rows, auto ms) {
    ms_of_rows[console::ParseInt(rows, 1, StepCosts::kMaxRows)] = ParseMs(ms);
  });
  if (!ms_of_rows.contains(1)) {
    Throw(ErrorKind::kInput, "{} has no time for a step of one row: add 1:MS", Quote(list));
  }
  return StepCosts::AlongLines(ms_of_rows);
}

// Parses "heads:2.1,partial:24".
void ParseDraftMs(std::string_view list, ReplayTimes& times) {
  ForEachPair(list, "heads:MS or partial:MS", [&](auto source, auto ms) {
    if (source != "heads" && source != "partial") {
      Throw(ErrorKind::kInput,
            "expected heads or partial, which are the draft sources with a time of their own, "
            "found {}",
            Quote(source));
    }
    (source == "heads" ? times.heads_ms : times.partial_ms) = ParseMs(ms);
  });
}

ReplayTimes& TimesOf(ReplayOptions& options) {
  return options.times ? *options.times : options.times.emplace();
}

std::vector<NamedReplay> ReplayWithoutModel(const ReplayOptions& options,
                                            std::span<const int32_t> tokens,
                                            int64_t prompt_tokens) {
  std::vector<std::unique_ptr<DraftSource>> sources;
  sources.push_back(std::make_unique<SuffixDrafts>());
  return {{"ngram", ReplayDrafts(tokens, prompt_tokens, options.times->step, std::move(sources),
                                 options.shape)}};
}

std::unique_ptr<DraftSource> RefuseToEstimate(std::string_view source) {
  Throw(ErrorKind::kUnsupported,
        "the gain by --draft {} is not estimated here: expected ngram, heads or partial, found {}",
        source, source);
}

}  // namespace

void AddReplayFlags(console::CommandLine& line, ReplayOptions& options) {
  line.Add({.names = "--step-ms",
            .value = "ROWS:MS,...",
            .help = "also estimate the gain by --draft ngram if a model had written the text, in "
                    "steps that take these times for so many rows, such as 1:22.2,8:24.2 (measure "
                    "them with godwit bench -p 1,8)"},
           [&](const std::string& value) { TimesOf(options).step = ParseStepMs(value); });
  line.Add({.names = "--draft",
            .value = "SOURCES",
            .help = "estimate the gain by these draft sources, as in godwit run; the model reads "
                    "the text (may be repeated to compare sources)",
            .is_verbs_own = true},
           options.drafts);
  line.Add({.names = "--draft-ms",
            .value = "SOURCE:MS,...",
            .help = "the times of draft sources: heads for each step, partial for each draft "
                    "token, such as heads:2.1,partial:24",
            .fallback = "heads: nothing"},
           [&](const std::string& value) { ParseDraftMs(value, TimesOf(options)); });
  line.Add({.names = "--draft-tree",
            .value = "SHAPE",
            .help = cli::kDraftTreeHelp,
            .fallback = "as large as saves time"},
           [&](const std::string& value) {
             TimesOf(options);
             options.shape = ParseDraftShape(value);
           });
  line.Add({.names = "--kv",
            .value = "SPEC",
            .help = "the cache policy of the model that reads the text"},
           options.kv);
}

void CheckReplay(const ReplayOptions& options) {
  if (options.times && options.times->step.Ms(1) > 0) return;
  if (options.times || !options.drafts.empty()) {
    Throw(ErrorKind::kInput,
          "the gain by draft tokens is estimated from the times of steps: add --step-ms");
  }
}

std::vector<NamedReplay> ReplayAll(const ModelFolder& model, const cli::ModelOptions& compute,
                                   const ReplayOptions& options, std::span<const int32_t> tokens,
                                   int64_t prompt_tokens) {
  if (options.drafts.empty()) return ReplayWithoutModel(options, tokens, prompt_tokens);
  RequireTokenIds(model.spec(), tokens);
  cli::WarnAboutThreads(compute.threads);
  ThreadPool pool(ThreadsFor(compute.threads));
  Workspace workspace;
  const Exec exec{
      .pool = pool, .kernels = *kernels::SelectIsa(compute.isa).table, .workspace = workspace};
  const auto decoder = LoadAsAsked(model, compute, pool, {});
  const AttentionGeometry geometry = Geometry(model.spec());
  const PolicyOptions text{.spec = options.kv, .context = std::ssize(tokens)};
  const DraftParts parts = {
      .vocab = decoder->vocab_size(),
      .heads =
          [&] {
            return LoadDraftHeads(model.path(), *decoder, decoder->StatesDigest(), pool,
                                  decoder->weight_types().layers, ReplayedMs);
          },
      .partial = [&](std::string_view arguments) -> std::unique_ptr<DraftSource> {
        if (options.times->partial_ms == 0) {
          Throw(ErrorKind::kInput,
                "the gain by --draft partial depends on the time of a draft token: add --draft-ms "
                "partial:MS");
        }
        return MakePartialDrafts(arguments, geometry, text, ReplayedMs);
      },
      .mtp = [] { return RefuseToEstimate("mtp"); },
      .eagle3 = [](std::string_view /*folder*/) { return RefuseToEstimate("eagle3"); },
      .model = [] { return RefuseToEstimate("model"); },
      .triforce = [](std::string_view /*arguments*/) { return RefuseToEstimate("triforce"); }};
  const auto prompt = MakeTextCache(geometry, text);
  ReadPrompt(tokens.first(prompt_tokens), *decoder, exec, *prompt);
  std::vector<NamedReplay> replays;
  for (const std::string& drafts : options.drafts) {
    replays.push_back(
        {drafts, ReplayDrafts(tokens, *prompt, *options.times, MakeDrafts(drafts, parts),
                              options.shape, *decoder, exec)});
  }
  return replays;
}

}  // namespace godwit::lab
