#include "cli/options/sampling_options.h"

#include <fmt/format.h>

#include <limits>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "console/terminal/output.h"
#include "sampling/options.h"
#include "text/json_grammar.h"

namespace godwit::cli {
namespace {

// What a range has to be is the sampler's business (Validate).
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
       .help = "add X to a token's logit, as 15043+1, 15043-2 or 15043-inf (may be repeated)",
       .repeats = true},
      [&sampler](const std::string& value) { console::ParseLogitBias(value, sampler.logit_bias); });
  AddChoice(line,
            {.names = "--repeat-penalty",
             .value = "X",
             .help = "makes tokens of the last text less likely (1: off)"},
            flags.given.repeat_penalty, sampler.repeat_penalty);
  AddChoice(line,
            {.names = "--repeat-last-n",
             .value = "N",
             .help = "the last text for the penalties, in tokens (0: none, -1: all)"},
            flags.given.repeat_last_n, sampler.repeat_last_n);
  line.Add({.names = "--presence-penalty",
            .value = "X",
            .help = "subtracted from tokens that occur there"},
           sampler.presence_penalty);
  line.Add(
      {.names = "--frequency-penalty", .value = "X", .help = "subtracted for each time they occur"},
      sampler.frequency_penalty);
}

void AddFilterFlags(console::CommandLine& line, SamplingFlags& flags) {
  const SamplerOptions& sampler = flags.sampler;
  AddChoice(
      line,
      {.names = "--top-k", .value = "N", .help = "choose among the N likeliest tokens (0: off)"},
      flags.given.top_k, sampler.top_k);
  AddChoice(line,
            {.names = "--top-p",
             .value = "X",
             .help = "among the fewest that hold this share of the probability (1: off)"},
            flags.given.top_p, sampler.top_p);
  AddChoice(line,
            {.names = "--min-p",
             .value = "X",
             .help = "among those at least X times as likely as the likeliest (0: off)"},
            flags.given.min_p, sampler.min_p);
  AddChoice(line, {.names = "--eta", .value = "X", .help = "epsilon of eta sampling (0: off)"},
            flags.given.eta, sampler.eta);
  AddChoice(line,
            {.names = "--temp,--temperature",
             .value = "X",
             .help = "temperature; 0: always the likeliest token"},
            flags.given.temperature, sampler.temperature);
}

// Calls use(field, choice of SamplerChoices, option of SamplerOptions) for every choice there is.
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
  line.AddInt({.names = "-n,--predict,--n-predict",
               .value = "N",
               .help = "at most N tokens (-1: until the model ends, or the context is full)"},
              flags.output_tokens, -1);
  line.Add({.names = "-r,--reverse-prompt,--stop",
            .value = "TEXT",
            .help = "end before this text comes up (may be repeated)"},
           flags.stop);
  line.Add({.names = "--ignore-eos", .value = "", .help = "go on where the model would end"},
           flags.ignore_eos);
  line.Add({.names = "-j,--json-schema",
            .value = "SCHEMA",
            .help = "the output is JSON of this schema; {\"type\": \"object\"}: any object"},
           flags.json_schema);
  line.Add({.names = "--json-schema-file", .value = "FILE", .help = "of the schema in this file"},
           [&flags](const std::string& file) {
             flags.json_schema = ReadTextFile(file, JsonGrammar::kMaxSchemaBytes);
           });
  line.Exclusive({"--json-schema", "--json-schema-file"});
  line.Add(
      {.names = "--draft",
       .value = "SOURCES",
       .help = "the same text in less time: read guesses along, of ngram: what the text had "
               "before in such a place; heads: trained by train-heads; partial: what the model "
               "says that sees a part of a long text (partial:budget=N tokens of it, 4096); "
               "several with commas between",
       .fallback = "none"},
      flags.draft);
  line.Group("Sampling, in this order");
  AddPenaltyFlags(line, flags);
  AddFilterFlags(line, flags);
  line.Add({.names = "--samplers",
            .value = "NAMES",
            .help = "another order of these steps, or fewer, as top_k;min_p;temperature",
            .fallback = "all, as above"},
           [&flags](const std::string& value) { flags.sampler.steps = ParseSteps(value); });
  line.AddInt({.names = "-s,--seed", .value = "N", .help = "seed of the choice (-1: random)"},
              flags.seed, -1);
}

GenerateOptions MakeGenerateOptions(const SamplingFlags& flags) {
  GenerateOptions options;
  options.max_tokens = flags.output_tokens;
  options.sampler = flags.sampler;
  ForEachChoice([&](const char*, auto choice, auto option) {
    options.sampler.*option = (flags.given.*choice).value_or(options.sampler.*option);
  });
  // 32 bits: they survive every JSON reader.
  options.sampler.seed =
      flags.seed < 0 ? std::random_device()() : static_cast<uint64_t>(flags.seed);
  options.stop = flags.stop;
  options.ignore_eos = flags.ignore_eos;
  options.json_schema = flags.json_schema;
  options.draft = flags.draft;
  Validate(options.sampler, std::numeric_limits<int32_t>::max());
  return options;
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
  // The model's reach is that of its own penalty.
  if (flags.given.repeat_penalty && effective.from_model.erase("repeat_last_n") > 0) {
    effective.options.repeat_last_n = sampler.repeat_last_n;
  }
  for (const std::string& sentence : model.not_followed) {
    console::WriteNotice("godwit: warning: " + sentence + "\n");
  }
  return effective;
}

}  // namespace godwit::cli
