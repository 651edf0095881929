#include "cli/options/sampling_options.h"

#include <fmt/format.h>

#include <limits>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "cli/options/find_model.h"
#include "console/terminal/output.h"
#include "engine/draft_shape.h"
#include "engine/make_drafts.h"
#include "sampling/options.h"
#include "text/json_grammar.h"

namespace godwit::cli {
namespace {

// The sampler checks ranges itself (Validate).
constexpr int64_t kAnyInt = std::numeric_limits<int>::min();

// A flag whose default is the model's choice, or else `fallback`.
template <typename Value>
void AddChoice(console::CommandLine& line, console::Flag flag, std::optional<Value>& choice,
               Value fallback) {
  flag.fallback = fmt::format("the model's, or {}", fallback);
  line.Add(std::move(flag), [&choice](const std::string& value) {
    if constexpr (std::is_same_v<Value, int>) {
      choice = static_cast<int>(console::ParseInt(value, kAnyInt, std::numeric_limits<int>::max()));
    } else {
      choice = console::ParseFloat(value);
    }
  });
}

void AddPenaltyFlags(console::CommandLine& line, SamplingFlags& flags) {
  SamplerOptions& sampler = flags.sampler;
  line.Add(
      {.names = "--logit-bias",
       .value = "ID+X",
       .help = "add X to the logit of token ID, such as 15043+1, 15043-2 or 15043-inf (may be "
               "repeated)",
       .repeats = true},
      [&sampler](const std::string& value) { console::ParseLogitBias(value, sampler.logit_bias); });
  AddChoice(line,
            {.names = "--repeat-penalty",
             .value = "X",
             .help = "make recent tokens less likely by the factor X (1: off)"},
            flags.given.repeat_penalty, sampler.repeat_penalty);
  AddChoice(line,
            {.names = "--repeat-last-n",
             .value = "N",
             .help = "the number of recent tokens that penalties apply to (0: none, -1: all)"},
            flags.given.repeat_last_n, sampler.repeat_last_n);
  line.Add({.names = "--presence-penalty",
            .value = "X",
            .help = "subtract X from the logits of recent tokens"},
           sampler.presence_penalty);
  line.Add({.names = "--frequency-penalty",
            .value = "X",
            .help = "subtract X for each time that a recent token occurs"},
           sampler.frequency_penalty);
}

void AddFilterFlags(console::CommandLine& line, SamplingFlags& flags) {
  const SamplerOptions& sampler = flags.sampler;
  AddChoice(
      line,
      {.names = "--top-k", .value = "N", .help = "choose among the N most likely tokens (0: off)"},
      flags.given.top_k, sampler.top_k);
  AddChoice(line,
            {.names = "--top-p",
             .value = "X",
             .help = "choose among the fewest tokens that together have probability X (1: off)"},
            flags.given.top_p, sampler.top_p);
  AddChoice(line,
            {.names = "--min-p",
             .value = "X",
             .help = "choose among tokens that are at least X times as likely as the most likely "
                     "one (0: off)"},
            flags.given.min_p, sampler.min_p);
  AddChoice(line, {.names = "--eta", .value = "X", .help = "the epsilon of eta sampling (0: off)"},
            flags.given.eta, sampler.eta);
  AddChoice(line,
            {.names = "--temp,--temperature",
             .value = "X",
             .help = "the temperature (0: always the most likely token)"},
            flags.given.temperature, sampler.temperature);
}

// Calls use(field, choice of SamplerChoices, option of SamplerOptions) for every choice.
template <typename Use>
void ForEachChoice(const Use& use) {
  use("repeat_last_n", &SamplerChoices::repeat_last_n, &SamplerOptions::repeat_last_n);
  use("repeat_penalty", &SamplerChoices::repeat_penalty, &SamplerOptions::repeat_penalty);
  use("top_k", &SamplerChoices::top_k, &SamplerOptions::top_k);
  use("top_p", &SamplerChoices::top_p, &SamplerOptions::top_p);
  use("min_p", &SamplerChoices::min_p, &SamplerOptions::min_p);
  use("eta", &SamplerChoices::eta, &SamplerOptions::eta);
  use("temperature", &SamplerChoices::temperature, &SamplerOptions::temperature);
}

}  // namespace

void AddSamplingFlags(console::CommandLine& line, SamplingFlags& flags) {
  line.Group("Output");
  line.AddInt(
      {.names = "-n,--predict,--n-predict",
       .value = "N",
       .help = "write at most N tokens (-1: until the model ends its text or the context is full)"},
      flags.output_tokens, -1);
  line.Add({.names = "-r,--reverse-prompt,--stop",
            .value = "TEXT",
            .help = "stop before this text appears (may be repeated)"},
           flags.stop);
  line.Add(
      {.names = "--ignore-eos", .value = "", .help = "continue where the model would end its text"},
      flags.ignore_eos);
  line.Add(
      {.names = "-j,--json-schema",
       .value = "SCHEMA",
       .help = "write JSON that follows this schema; {\"type\": \"object\"} allows any object"},
      flags.json_schema);
  line.Add({.names = "--json-schema-file",
            .value = "FILE",
            .help = "write JSON that follows the schema in this file"},
           [&flags](const std::string& file) {
             flags.json_schema = ReadTextFile(file, JsonGrammar::kMaxSchemaBytes);
           });
  line.Exclusive({"--json-schema", "--json-schema-file"});
  line.Add({.names = "--draft",
            .value = "SOURCES",
            .help = "speculative decoding: check draft tokens in one step, for the same text in "
                    "less time. Sources, separated by commas: ngram, earlier passages of the text; "
                    "model, the model of -md; "
                    "mtp, the layer for multi-token prediction of the model; eagle3:FOLDER, an "
                    "EAGLE-3 head that was trained for the model; heads, trained by "
                    "godwit train-heads; partial, the model itself over N tokens "
                    "of a long text (partial:budget=4096:block=64); ngram-table and triforce, "
                    "for comparison",
            .fallback = "none, or model with -md"},
           flags.draft);
  line.Add({.names = "-md,--model-draft",
            .value = "MODEL",
            .help = "a smaller model with the same tokenizer, named as for -m, which writes draft "
                    "tokens (--draft model)"},
           flags.draft_model);
  line.Add({.names = "--draft-tree",
            .value = "SHAPE",
            .help = kDraftTreeHelp,
            .fallback = "as large as saves time"},
           [&flags](const std::string& value) {
             (void)ParseDraftShape(value);
             flags.draft_tree = value;
           });
  line.Group("Sampling, in this order");
  AddPenaltyFlags(line, flags);
  AddFilterFlags(line, flags);
  line.Add({.names = "--samplers",
            .value = "NAMES",
            .help = "the steps to apply, in their order, such as top_k;min_p;temperature",
            .fallback = "all, as above"},
           [&flags](const std::string& value) { flags.sampler.steps = ParseSteps(value); });
  line.AddInt({.names = "-s,--seed",
               .value = "N",
               .help = "the seed of random choices (-1: a new one each time)"},
              flags.seed, -1);
}

GenerateOptions MakeGenerateOptions(const SamplingFlags& flags) {
  GenerateOptions options;
  options.max_tokens = flags.output_tokens;
  options.sampler = flags.sampler;
  ForEachChoice([&](const char*, auto choice, auto option) {
    options.sampler.*option = (flags.given.*choice).value_or(options.sampler.*option);
  });
  // A seed of 32 bits survives every JSON reader.
  options.sampler.seed =
      flags.seed < 0 ? std::random_device()() : static_cast<uint64_t>(flags.seed);
  options.stop = flags.stop;
  options.ignore_eos = flags.ignore_eos;
  options.json_schema = flags.json_schema;
  options.draft = flags.draft;
  if (!flags.draft_model.empty() && !NamesDraftModel(flags.draft)) {
    options.draft += flags.draft.empty() ? "model" : ",model";
  }
  if (options.draft.empty() && !flags.draft_tree.empty()) {
    Throw(ErrorKind::kInput, "--draft-tree shapes trees of draft tokens: add --draft or -md");
  }
  options.draft_tree = flags.draft_tree;
  Validate(options.sampler, std::numeric_limits<int32_t>::max());
  return options;
}

void TakeDraftFlags(const SamplingFlags& flags, ModelOptions& model) {
  model.mtp = NamesMtp(flags.draft);
  model.eagle3 = Eagle3FolderIn(flags.draft);
  if (!flags.draft_model.empty()) model.draft_model = FindModel(flags.draft_model);
}

EffectiveSampler TakeModelDefaults(const SamplingFlags& flags, const SamplerOptions& sampler,
                                   const SamplerDefaults& model) {
  EffectiveSampler effective{.options = sampler, .from_model = {}};
  ForEachChoice([&](const char* field, auto choice, auto option) {
    const bool given = (flags.given.*choice).has_value();
    if (const auto problem = model.problems.find(field); problem != model.problems.end()) {
      if (!given) throw Error(ErrorKind::kFormat, problem->second);
      console::WriteNotice("godwit: warning: " + problem->second + "\n");
    }
    if (given || !(model.choices.*choice).has_value()) return;
    effective.options.*option = *(model.choices.*choice);
    effective.from_model.insert(field);
  });
  // The model's repeat_last_n belongs to the model's own penalty.
  if (flags.given.repeat_penalty && effective.from_model.erase("repeat_last_n") > 0) {
    effective.options.repeat_last_n = sampler.repeat_last_n;
  }
  for (const std::string& sentence : model.not_followed) {
    console::WriteNotice("godwit: warning: " + sentence + "\n");
  }
  return effective;
}

}  // namespace godwit::cli
