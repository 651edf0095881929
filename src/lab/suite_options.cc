#include "lab/suite_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "attention/policies/prefill_spec.h"
#include "attention/ranks/choose_prefill.h"
#include "base/error.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "cli/options/cache_options.h"
#include "cli/options/template_options.h"
#include "console/options/parse_value.h"
#include "console/options/text_input.h"
#include "console/terminal/output.h"
#include "console/terminal/result_files.h"
#include "eval/suites/foreign_anchor.h"
#include "eval/suites/ruler_file.h"

namespace godwit::lab {
namespace {

using eval::HayText;
using eval::Suite;

void ParseSuites(std::string_view verb, const std::string& names,
                 std::vector<const Suite*>& suites) {
  suites.clear();
  for (const std::string_view name : console::SplitAtCommas(names)) {
    const Suite& suite = eval::FindSuite(verb, name);
    if (std::ranges::find(suites, &suite) != suites.end()) {
      Throw(ErrorKind::kInput, "the task {} is named twice", name);
    }
    suites.push_back(&suite);
  }
}

std::vector<int64_t> ParseDifferent(const std::string& list, int64_t min, int64_t max) {
  std::vector<int64_t> numbers = console::ParseIntList(list, min, max);
  std::ranges::sort(numbers);
  const auto twice = std::ranges::adjacent_find(numbers);
  if (twice != numbers.end()) Throw(ErrorKind::kInput, "{} is named twice", *twice);
  return numbers;
}

void AddSuiteFlags(console::CommandLine& line, std::string_view verb, SuiteOptions& options) {
  constexpr int64_t kMaxTokens = int64_t{1} << 32;
  line.Group("Samples");
  if (options.suites.size() > 1) {
    const auto name = [](const Suite* suite) { return suite->name; };
    line.Add({.names = "--tasks",
              .value = "A,B,...",
              .help = "the tasks to run: " + NameList(options.suites, name),
              .fallback = "all",
              .choices = Names(options.suites, name),
              .is_verbs_own = true},
             [&options, verb](const std::string& value) {
               ParseSuites(verb, value, options.suites);
               options.tasks_named = true;
             });
  }
  line.Add({.names = "--lengths",
            .value = "A,B,...",
            .help = "the lengths to test, in tokens of the model, prompt and answer together; each "
                    "sample holds as much text as fits",
            .fallback = fmt::format("{}", fmt::join(options.lengths, ","))},
           [&options](const std::string& value) {
             options.lengths = ParseDifferent(value, 1, kMaxTokens);
           });
  if (options.suites.front()->has_depth) {
    line.Add(
        {.names = "--depths",
         .value = "A,B,...",
         .help = "the place of the answer in the text, in %",
         .fallback = fmt::format("{}", fmt::join(options.depths, ","))},
        [&options](const std::string& value) { options.depths = ParseDifferent(value, 0, 100); });
  }
  line.AddInt({.names = "-n,--samples",
               .value = "N",
               .help = options.suites.front()->has_depth ? "the samples for each length and depth"
                                                         : "the samples for each length",
               .is_verbs_own = true},
              options.samples, 1, 1'000'000);
  AddSeedFlag(line, options, "the seed of all random choices");
  std::vector<std::string_view> data;
  for (const Suite* suite : options.suites) {
    if (suite->data != nullptr && (data.empty() || data.back() != suite->data)) {
      data.emplace_back(suite->data);
    }
  }
  if (!data.empty()) {
    line.Add({.names = "-d,--data",
              .value = "FOLDER",
              .help = fmt::format("a folder with {}", fmt::join(data, "; "))},
             options.folder);
  }
  if (verb == "ruler") {
    line.Add({.names = "--generated",
              .value = "FOLDER",
              .help = "ask samples that RULER's own generator wrote: TASK/validation.jsonl or "
                      "TASK.jsonl in the folder, by default all of them. A sample longer than the "
                      "value of --lengths is refused, never cut"},
             options.generated);
  }
  const HayText text = (*std::ranges::max_element(options.suites, {}, &Suite::text))->text;
  if (text != HayText::kNone) {
    const bool may_repeat = text == HayText::kIfAny;
    line.Add(
        {.names = "-f,--file",
         .value = "FILE",
         .help = fmt::format("a text to hide the answer in{}; may be repeated, for a longer one",
                             may_repeat ? ", instead of lines that repeat" : ""),
         .takes_list = true},
        options.files);
    console::AddLossyFlag(line, options.lossy);
  }
  line.AddInt({.names = "--max-new",
               .value = "N",
               .help = "the most tokens of an answer (0: the limit of the original suite)"},
              options.max_new_tokens, 0, 1 << 20);
  line.Add({.names = "--chat",
            .value = "",
            .help = "ask a chat model in the format of its chat template; the beginning of an "
                    "answer in the prompt becomes the beginning of the model's turn"},
           options.chat);
  cli::AddTemplateFlags(line, options.model, options.template_variables);
}

struct MissingInput {
  std::string flag, what;
};

// The input that a suite needs and that was not given.
std::optional<MissingInput> MissingOf(const Suite& suite, const SuiteOptions& options) {
  if (suite.data != nullptr && options.folder.empty()) {
    return MissingInput{"-d FOLDER", fmt::format("a folder with {}", suite.data)};
  }
  if (suite.text == HayText::kNeeded && options.files.empty()) {
    return MissingInput{"-f FILE", "a text to hide the answer in"};
  }
  return std::nullopt;
}

// Keeps the suites whose inputs are all given. A suite that the user named must have them.
void ChooseMade(SuiteOptions& options) {
  const bool any_ready = std::ranges::any_of(
      options.suites, [&](const Suite* suite) { return !MissingOf(*suite, options); });
  std::map<std::string, std::vector<std::string_view>> left_out;  // keys: flags
  std::vector<const Suite*> ready;
  for (const Suite* suite : options.suites) {
    const auto missing = MissingOf(*suite, options);
    if (!missing) {
      ready.push_back(suite);
      continue;
    }
    if (options.tasks_named || !any_ready) {
      Throw(ErrorKind::kInput, "{}: needs {}: give it with {}", suite->name, missing->what,
            missing->flag);
    }
    left_out[missing->flag].push_back(suite->name);
  }
  for (const auto& [flag, names] : left_out) {
    console::WriteNotice(
        fmt::format("godwit: without {}, left out: {}\n", flag, fmt::join(names, ", ")));
  }
  options.suites = std::move(ready);
}

// Makes the star one with a foreign anchor.
void TakeForeignAnchor(SuiteOptions& options) {
  std::string& prefill = options.session.prefill;
  if (prefill.empty() || prefill == kAutoPrefill || !ParsePrefill(prefill).star()) {
    Throw(ErrorKind::kInput, "--anchor-tokens is for an anchor: it needs --prefill star:block=N");
  }
  PrefillSpec spec = ParsePrefill(prefill);
  spec.foreign = true;
  prefill = ParsePrefill(spec.ToString()).ToString();  // refuses what does not go together
}

// Keeps the suites whose files exist, unless the user named suites.
void ChooseGenerated(SuiteOptions& options) {
  for (const auto& [given, flag] :
       {std::pair(!options.files.empty(), "-f"), std::pair(!options.folder.empty(), "-d")}) {
    if (given)
      Throw(ErrorKind::kInput, "{}: the samples of --generated are complete: leave this flag out",
            flag);
  }
  if (options.lengths.size() > 1) {
    Throw(ErrorKind::kInput, "--generated: expected one value of --lengths, found {}",
          options.lengths.size());
  }
  if (options.tasks_named) return;
  std::erase_if(options.suites, [&](const Suite* suite) {
    return !eval::RulerFile(options.generated, suite->name);
  });
  if (options.suites.empty()) {
    Throw(ErrorKind::kIo, "{}: expected TASK/validation.jsonl or TASK.jsonl of a task of RULER",
          QuoteUnlessPlain(options.generated));
  }
}

}  // namespace

SuiteOptions ParseSuiteOptions(std::string_view verb, const std::string& summary,
                               std::span<const std::string> arguments) {
  SuiteOptions options;
  options.suites = eval::SuitesOf(verb);
  if (!options.suites.front()->has_depth) options.depths.clear();
  console::CommandLine line(fmt::format("eval {}", verb), "[-m MODEL] [flags]",
                            summary + kComparesPolicies);
  cli::AddModelFlag(line, options.model);
  cli::AddComputeFlags(line, options.model);
  AddSuiteFlags(line, verb, options);
  AddComparedFlags(line, options, "the prompts of the first N samples",
                   "the question and the beginning of its answer");
  line.Add({.names = "--anchor-tokens",
            .value = "KIND",
            .help = "with --prefill star:block=N: the anchor has other tokens than the text's "
                    "first: those in random order (shuffled), any of the vocabulary (random), or "
                    "the last of TEXT again and again; first: the same, for comparison",
            .fallback = "the text's own anchor",
            .choices = {"first", "shuffled", "random", "constant:TEXT"}},
           [&options](const std::string& value) {
             (void)eval::ForeignAnchor(value);
             options.anchor_tokens = value;
           });
  cli::AddCacheFlags(line, options.model.cache);
  line.Parse(arguments);
  if (!options.anchor_tokens.empty()) TakeForeignAnchor(options);
  if (!options.generated.empty()) {
    ChooseGenerated(options);
  } else {
    ChooseMade(options);
  }
  if (!options.chat) {
    if (const char* flag = cli::GivenTemplateFlag(options.model, options.template_variables)) {
      Throw(ErrorKind::kInput, "{} is for chat models: it needs --chat", flag);
    }
  }
  std::vector<console::NamedFile> inputs;
  for (const std::string& file : options.files) inputs.push_back({"-f", file});
  FinishCompared(options, std::move(inputs));
  if (options.chat) cli::RequireChatTemplate(options.model, "--chat needs", "or leave --chat out");
  return options;
}

std::string SettingsText(const SuiteOptions& options) {
  return SettingsText(static_cast<const ComparedOptions&>(options)) +
         (options.anchor_tokens.empty() ? "" : ", anchors " + options.anchor_tokens) +
         (options.chat ? ", as a chat" : "");
}

}  // namespace godwit::lab
