#include "lab/text_replays.h"

#include <map>
#include <utility>

#include "attention/make_policy.h"
#include "base/cores.h"
#include "base/error.h"
#include "base/quote.h"
#include "console/options/parse_value.h"
#include "engine/make_drafts.h"
#include "engine/make_partial_drafts.h"
#include "engine/storage_types.h"
#include "generate/suffix_drafts.h"
#include "kernels/dispatch.h"
#include "model/loader.h"
#include "tensor/workspace.h"

namespace godwit::lab {
namespace {

double ParseMs(std::string_view text) {
  const double ms = console::ParseFloat(text);
  if (!(ms > 0 && ms < 1e9)) {
    Throw(ErrorKind::kInput, "{} are no milliseconds of a step", Quote(text));
  }
  return ms;
}

// Calls see(key, value) of "key:value,key:value", with another mark between them.
template <typename See>
void ForEachPair(std::string_view list, char mark, std::string_view example, const See& see) {
  for (const std::string_view item : console::SplitAtCommas(list)) {
    const size_t at = item.find(mark);
    if (at == std::string_view::npos) {
      Throw(ErrorKind::kInput, "{} is not {}", Quote(item), example);
    }
    see(item.substr(0, at), item.substr(at + 1));
  }
}

// "1:22.2,8:24"
StepCosts ParseStepMs(std::string_view list) {
  std::map<int64_t, double> ms_of_rows;
  ForEachPair(list, ':', "ROWS:MS, such as 8:24.5", [&](auto rows, auto ms) {
    ms_of_rows[console::ParseInt(rows, 1, StepCosts::kMaxRows)] = ParseMs(ms);
  });
  if (!ms_of_rows.contains(1)) {
    Throw(ErrorKind::kInput, "{} says nothing of a step of one row: add 1:MS", Quote(list));
  }
  return StepCosts::AlongLines(ms_of_rows);
}

// "heads:2.1,partial:24"
void ParseDraftMs(std::string_view list, ReplayTimes& times) {
  ForEachPair(list, ':', "heads:MS or partial:MS", [&](auto source, auto ms) {
    if (source != "heads" && source != "partial") {
      Throw(ErrorKind::kInput, "{} are no drafts that take a time of their own: heads, partial do",
            Quote(source));
    }
    (source == "heads" ? times.heads_ms : times.partial_ms) = ParseMs(ms);
  });
}

// "rows=16,depth=4,children=2", or "3x3x3"
DraftShape ParseShape(std::string_view text) {
  DraftShape shape;
  if (text.find('=') == std::string_view::npos) {
    shape.rows = shape.depth = StepCosts::kMaxRows;
    for (const std::string_view children : console::SplitAt('x', text)) {
      shape.fixed.push_back(console::ParseInt(children, 1, StepCosts::kMaxRows));
    }
    return shape;
  }
  ForEachPair(text, '=', "rows=N, depth=N or children=N", [&](auto key, auto value) {
    int64_t* const limit = key == "rows"       ? &shape.rows
                           : key == "depth"    ? &shape.depth
                           : key == "children" ? &shape.children
                                               : nullptr;
    if (limit == nullptr) {
      Throw(ErrorKind::kInput, "a tree has rows, depth and children, and no {}", Quote(key));
    }
    *limit = console::ParseInt(value, 1, StepCosts::kMaxRows);
  });
  return shape;
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

}  // namespace

void AddReplayFlags(console::CommandLine& line, ReplayOptions& options) {
  line.Add({.names = "--step-ms",
            .value = "ROWS:MS,...",
            .help = "also count what --draft ngram would save if a model had written the text, in "
                    "steps that take so long, as 1:22.2,8:24.2 (godwit bench -p 1,8 says)"},
           [&](const std::string& value) { TimesOf(options).step = ParseStepMs(value); });
  line.Add({.names = "--draft",
            .value = "SOURCES",
            .help = "then by these sources, as run has them: the model takes every step (may be "
                    "repeated, to compare them)",
            .is_verbs_own = true},
           options.drafts);
  line.Add({.names = "--draft-ms",
            .value = "SOURCE:MS,...",
            .help = "what sources take: heads for each step, partial for each token that it "
                    "guesses, as heads:2.1,partial:24",
            .fallback = "heads: nothing"},
           [&](const std::string& value) { ParseDraftMs(value, TimesOf(options)); });
  line.Add({.names = "--draft-tree",
            .value = "SHAPE",
            .help = "with trees of at most rows=N,depth=N,children=N, each of which may be left "
                    "out; or always of 3x3x3: three guesses, three behind each, ...",
            .fallback = "as large as pays"},
           [&](const std::string& value) {
             TimesOf(options);
             options.shape = ParseShape(value);
           });
  line.Add({.names = "--kv", .value = "SPEC", .help = "as it sees the text by this policy"},
           options.kv);
}

void CheckReplay(const ReplayOptions& options) {
  if (options.times && options.times->step.Ms(1) > 0) return;
  if (options.times || !options.drafts.empty()) {
    Throw(ErrorKind::kInput, "what guesses save is counted in steps of known times: add --step-ms");
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
  const auto decoder =
      LoadModel(model, pool, {}, ParseWeightType(compute.weights), cli::PackedCopy(compute));
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
                "what --draft partial saves depends on what its guesses take: add --draft-ms "
                "partial:MS for one of them");
        }
        return MakePartialDrafts(arguments, geometry, text, ReplayedMs);
      }};
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
