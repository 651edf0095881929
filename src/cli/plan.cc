// godwit plan: the time and memory of a run, before it.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/machine_memory.h"
#include "chat/plans.h"
#include "cli/commands.h"
#include "cli/options/model_options.h"
#include "cli/options/sampling_options.h"
#include "cli/options/template_options.h"
#include "cli/read_files_as_passages.h"
#include "cli/run_options.h"
#include "console/exit_code.h"
#include "console/terminal/format.h"
#include "console/terminal/json_output.h"
#include "console/terminal/output.h"
#include "console/terminal/table.h"

namespace godwit::cli {
namespace {

// The ways that stand beside the one that the flags name.
constexpr std::pair<const char*, const char*> kOtherWays[] = {{"dense", ""},
                                                              {"dense", "star"},
                                                              {"dense", "window:4096"},
                                                              {"blocks", ""},
                                                              {"sinks:4+4092", ""}};

std::vector<chat::Way> WaysOf(const RunOptions& options, const std::string& draft) {
  std::vector<chat::Way> ways{{options.session.kv, options.session.prefill, draft}};
  const auto add = [&](const chat::Way& way) {
    if (std::ranges::find(ways, way) == ways.end()) ways.push_back(way);
  };
  for (const auto& [kv, prefill] : kOtherWays) add({kv, prefill, draft});
  if (draft.empty()) add({options.session.kv, options.session.prefill, "ngram"});
  return ways;
}

std::string Time(double ms) {
  if (ms < 1000) return fmt::format("{:.3g} ms", ms);
  return ms < 100'000 ? fmt::format("{:.3g} s", ms / 1000) : console::FormatDuration(ms / 1000);
}

std::string PlansText(std::span<const chat::Plan> plans) {
  std::string text, notes;
  const auto note = [&](const std::string& line) {
    if (notes.find(line) == std::string::npos) notes += line + "\n";
  };
  const auto priced = std::ranges::find_if(plans, [](const auto& plan) { return !!plan.price; });
  if (priced != plans.end()) {
    text = fmt::format("the prompt has {}\n\n",
                       console::Plural(priced->price->prompt_tokens, "token"));
  }
  console::Table table(
      {"<kv", "<prefill", "<draft", "cached", "first token", "each token", "kv cache"});
  for (const chat::Plan& plan : plans) {
    if (!plan.price) {
      note(fmt::format("kv {}{}{}: {}", plan.way.kv, plan.way.prefill.empty() ? "" : ", prefill ",
                       plan.way.prefill, plan.refusal));
      continue;
    }
    const RequestPrice& price = *plan.price;
    const bool unknown_draft = !plan.way.draft.empty() && !price.draft_measured;
    const char* const about = price.near_measured ? "" : "~";
    table.AddRow({price.kv, price.prefill, plan.way.draft, fmt::format("{}", price.cached_tokens),
                  about + Time(price.first_token_ms),
                  (unknown_draft ? "<= " : about) + Time(price.token_ms),
                  FormatBytes(price.kv_bytes)});
    if (price.disk_tokens > 0) {
      note(fmt::format("{} of them from the disk",
                       console::Plural(price.disk_tokens, "cached token")));
    }
    if (!price.near_measured) note("~ farther from what a short probe measured than the rest");
    if (unknown_draft) note("<= without draft tokens, whose gain is known after a text");
  }
  text += table.Take();
  return notes.empty() ? text : text + "\n" + notes;
}

}  // namespace

int Plan(std::span<const std::string> arguments) {
  RunOptions options;
  ParseRun("plan",
           "Tells the time and the memory that a run with the same flags would take, and what it "
           "would take with other cache policies. Nothing is written. Costs are those of a short "
           "probe: a few steps of the model.",
           arguments, options);
  ChooseModel(options.model);
  GenerateOptions generate = MakeGenerateOptions(options.sampling);
  const console::GivenTexts texts = console::RequireTexts(options.text, /*takes_pipe=*/true);
  if (options.chat.value_or(false)) {
    RequireChatTemplate(options.model, "--chat needs", "leave --chat out");
  }
  TakeDraftFlags(options.sampling, options.model);
  const Engine engine = LoadEngine(options.model, options.session);
  const Session session = engine.NewSession(options.session);
  chat::Prompt prompt;
  if (options.passages) {
    CutFilesAsPassages(engine, options, texts, session, prompt);
  } else {
    prompt = MakePrompt(engine, session, options, texts);
  }
  if (options.query_tokens > 0) prompt.query_tokens = options.query_tokens;
  const auto plans = chat::PlansOf(
      engine, options.session, prompt, generate, WaysOf(options, generate.draft),
      [](const Error& error) { return std::string(error.what()); }, options.read_anew);
  if (!plans.front().price) Throw(ErrorKind::kInput, "{}", plans.front().refusal);
  if (options.json) {
    console::WriteJson(chat::PlansJson(plans));
  } else {
    console::WriteOutput(PlansText(plans));
  }
  return console::kExitOk;
}

}  // namespace godwit::cli
