// godwit eval text: how much a text repeats itself, and how much time draft tokens would save in
// it.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "checkpoint/model_folder.h"
#include "cli/options/model_options.h"
#include "console/exit_code.h"
#include "console/options/text_input.h"
#include "console/terminal/json_output.h"
#include "console/terminal/output.h"
#include "console/terminal/table.h"
#include "eval/distinct.h"
#include "lab/commands.h"
#include "lab/text_replays.h"

namespace godwit::lab {
namespace {

constexpr int64_t kMaxDistinct = 4;

struct TextEvalOptions {
  cli::ModelOptions model;
  console::TextInput text;
  ReplayOptions replay;
  int64_t prompt_tokens = 1;
  bool json = false;
};

TextEvalOptions ParseTextEval(std::span<const std::string> arguments) {
  TextEvalOptions options;
  console::CommandLine line(
      "eval text", "[-m MODEL] [-p TEXT | -f FILE] [flags]",
      "Measures the repetition of a text as Distinct-n: the share of its runs of n tokens that are "
      "different. Loads only the tokenizer, or with --draft the whole model.");
  cli::AddModelFlag(line, options.model);
  cli::AddComputeFlags(line, options.model);
  line.Group("Text");
  console::AddTextFlags(line, options.text, "the text");
  line.Group("Speculation");
  AddReplayFlags(line, options.replay);
  line.AddInt({.names = "--prompt-tokens",
               .value = "N",
               .help = "take the first N tokens as the prompt, which is not measured",
               .fallback = "1"},
              options.prompt_tokens, 1);
  line.Group("Output");
  line.Add({.names = "--json", .value = "", .help = "print one JSON object"}, options.json);
  line.Parse(arguments);
  CheckReplay(options.replay);
  return options;
}

nlohmann::ordered_json TextEvalJson(int64_t tokens, const std::vector<double>& distinct,
                                    double average, const std::vector<NamedReplay>& replays) {
  nlohmann::ordered_json json{{"tokens", tokens}, {"distinct", distinct}, {"average", average}};
  for (const auto& [drafts, replay] : replays) {
    nlohmann::ordered_json one{{"draft", drafts},       {"tokens", replay.tokens},
                               {"steps", replay.steps}, {"draft_tokens", replay.draft_tokens},
                               {"ms", replay.ms},       {"plain_ms", replay.plain_ms}};
    for (const auto& [source, draft_tokens, skipped_steps] : replay.accepted) {
      one["sources"][std::string(source)] = draft_tokens;
      one["skipped_steps"][std::string(source)] = skipped_steps;
    }
    json["replays"].push_back(std::move(one));
  }
  return json;
}

std::string TextEvalText(int64_t tokens, const std::vector<double>& distinct, double average,
                         const std::vector<NamedReplay>& replays) {
  console::Table facts = console::Facts();
  facts.Add("tokens", tokens);
  for (size_t n = 0; n < distinct.size(); ++n) {
    facts.Add(fmt::format("distinct-{}", n + 1), fmt::format("{:.3f}", distinct[n]));
  }
  facts.Add("average", fmt::format("{:.3f}", average));
  if (replays.empty()) return facts.Take();
  console::Table table({{"<drafts"},
                        {"tokens a step", "{:.2f}"},
                        {"of rows", "{:.1f}"},
                        {"x plain decoding", "{:.2f}"}});
  for (const auto& [drafts, replay] : replays) {
    const auto steps = static_cast<double>(replay.steps);
    table.Add(drafts, static_cast<double>(replay.tokens) / steps,
              1 + static_cast<double>(replay.draft_tokens) / steps, replay.plain_ms / replay.ms);
  }
  return facts.Take() + "\n" + table.Take();
}

}  // namespace

int EvalText(std::span<const std::string> arguments) {
  const TextEvalOptions options = ParseTextEval(arguments);
  cli::ModelOptions model = options.model;
  cli::ChooseModel(model);
  const ModelFolder folder(model.folder);
  folder.RequireTokenizer();
  const auto tokens =
      folder.tokenizer()->Encode(console::RequireText(options.text), /*add_special_tokens=*/false);
  if (std::ssize(tokens) <= options.prompt_tokens) {
    Throw(ErrorKind::kInput,
          "the text has {} tokens, so nothing follows a prompt of {}: lower --prompt-tokens",
          tokens.size(), options.prompt_tokens);
  }
  const auto written = std::span<const int32_t>(tokens).subspan(options.prompt_tokens);
  std::vector<double> distinct;
  double average = 0;
  for (int64_t n = 1; n <= kMaxDistinct; ++n) {
    distinct.push_back(eval::DistinctShare(written, n));
    average += distinct.back() / kMaxDistinct;
  }
  std::vector<NamedReplay> replays;
  if (options.replay.times) {
    replays = ReplayAll(folder, model, options.replay, tokens, options.prompt_tokens);
  }
  if (options.json) {
    console::WriteJson(TextEvalJson(std::ssize(written), distinct, average, replays));
  } else {
    console::WriteOutput(TextEvalText(std::ssize(written), distinct, average, replays));
  }
  return console::kExitOk;
}

}  // namespace godwit::lab
