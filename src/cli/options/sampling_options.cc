#include "cli/options/sampling_options.h"

#include <limits>
#include <random>

#include "sampling/options.h"

namespace godwit::cli {
namespace {

// What a range has to be is the sampler's business (Validate).
constexpr int64_t kAnyInt = std::numeric_limits<int>::min();

void AddFilterFlags(CommandLine& line, SamplerOptions& sampler) {
  line.Add({.names = "--temp,--temperature",
            .value = "X",
            .help = "temperature; 0: always the likeliest token"},
           sampler.temperature);
  line.AddInt(
      {.names = "--top-k", .value = "N", .help = "choose among the N likeliest tokens (0: off)"},
      sampler.top_k, kAnyInt);
  line.Add({.names = "--top-p",
            .value = "X",
            .help = "among the fewest that hold this share of the probability (1: off)"},
           sampler.top_p);
  line.Add({.names = "--min-p",
            .value = "X",
            .help = "among those at least X times as likely as the likeliest (0: off)"},
           sampler.min_p);
  line.Add({.names = "--eta", .value = "X", .help = "epsilon of eta sampling (0: off)"},
           sampler.eta);
}

void AddPenaltyFlags(CommandLine& line, SamplerOptions& sampler) {
  line.Add({.names = "--repeat-penalty",
            .value = "X",
            .help = "makes tokens of the last text less likely (1: off)"},
           sampler.repeat_penalty);
  line.AddInt({.names = "--repeat-last-n",
               .value = "N",
               .help = "the last text for the penalties, in tokens (0: none, -1: all)"},
              sampler.repeat_last_n, kAnyInt);
  line.Add({.names = "--presence-penalty",
            .value = "X",
            .help = "subtracted from tokens that occur there"},
           sampler.presence_penalty);
  line.Add(
      {.names = "--frequency-penalty", .value = "X", .help = "subtracted for each time they occur"},
      sampler.frequency_penalty);
  line.Add({.names = "--logit-bias",
            .value = "ID+X",
            .help = "add X to a token's logit, as 15043+1, 15043-2 or 15043-inf (may be repeated)"},
           [&sampler](const std::string& value) { ParseLogitBias(value, sampler.logit_bias); });
}

}  // namespace

void AddSamplingFlags(CommandLine& line, SamplingFlags& flags) {
  line.Group("Output");
  line.AddInt({.names = "-n,--predict,--n-predict",
               .value = "N",
               .help = "at most N tokens (-1: until the model ends, or the context is full)"},
              flags.max_tokens, -1);
  line.Add({.names = "-r,--reverse-prompt,--stop",
            .value = "TEXT",
            .help = "end before this text comes up (may be repeated)"},
           flags.stop);
  line.Add({.names = "--ignore-eos", .value = "", .help = "go on where the model would end"},
           flags.ignore_eos);
  line.Group("Sampling, in this order");
  AddPenaltyFlags(line, flags.sampler);
  AddFilterFlags(line, flags.sampler);
  line.AddInt({.names = "-s,--seed", .value = "N", .help = "seed of the choice (-1: random)"},
              flags.seed, -1);
}

GenerateOptions MakeGenerateOptions(const SamplingFlags& flags) {
  GenerateOptions options;
  options.max_tokens = flags.max_tokens;
  options.sampler = flags.sampler;
  // 32 bits: they survive every JSON reader.
  options.sampler.seed =
      flags.seed < 0 ? std::random_device()() : static_cast<uint64_t>(flags.seed);
  options.stop = flags.stop;
  options.ignore_eos = flags.ignore_eos;
  Validate(options.sampler, std::numeric_limits<int32_t>::max());
  return options;
}

}  // namespace godwit::cli
