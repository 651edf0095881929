#include "cli/options/kv_options.h"

#include <string_view>

#include "base/error.h"
#include "base/quote.h"
#include "engine/kv_mode.h"

namespace godwit::cli {
namespace {

// Refused here rather than by the session, which comes after the weights.
const std::string& CheckedKvType(const std::string& value) {
  for (const std::string_view type : {"auto", "f32", "f16", "bf16"}) {
    if (value == type) return value;
  }
  Throw(ErrorKind::kInput, "expected auto, f32, f16 or bf16, found {}", Quote(value));
}

}  // namespace

void AddKvFlags(CommandLine& line, SessionOptions& options) {
  line.Group("Context");
  line.AddInt({.names = "-c,--ctx-size",
               .value = "N",
               .help = "longest text, prompt and output, in tokens (0: what the model allows)"},
              options.context_tokens, 0);
  AddKvCacheFlags(line, options);
}

void AddKvCacheFlags(CommandLine& line, SessionOptions& options) {
  std::string policies;
  for (const PolicyKind& kind : AllPolicies()) {
    policies += fmt::format("{}: {}; ", kind.usage, kind.description);
  }
  policies += fmt::format("{}: {}", kRecomputeUsage, kRecomputeDescription);
  line.Add({.names = "--kv",
            .value = "SPEC",
            .help = "what is kept of the text (" + options.kv + "). " + policies},
           options.kv);
  line.Add({.names = "--kv-type",
            .value = "TYPE",
            .help = "how it is kept: f32, f16, bf16; auto (the default): f32 for an f32 model, "
                    "else bf16"},
           [&options](const std::string& value) { options.kv_type = CheckedKvType(value); });
  line.AddInt({.names = "-ub,--ubatch-size",
               .value = "N",
               .help = fmt::format("read the prompt in pieces of N tokens ({}); changes speed and "
                                   "memory, never the result",
                                   options.chunk_tokens)},
              options.chunk_tokens, 1, 1 << 20);
}

int64_t CheckKvOptions(const DecoderSpec& spec, const SessionOptions& options) {
  return MostKept(Geometry(spec), {.spec = options.kv,
                                   .kv_type = DType::kBF16,
                                   .context = options.context_tokens == 0 ? DefaultContext(spec)
                                                                          : options.context_tokens,
                                   .max_step_tokens = options.chunk_tokens});
}

}  // namespace godwit::cli
