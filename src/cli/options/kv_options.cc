#include "cli/options/kv_options.h"

#include <functional>

#include "base/error.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "engine/kv_mode.h"
#include "engine/storage_types.h"

namespace godwit::cli {
namespace {

// Here, since the session comes after the weights.
void RefuseUnknownPolicy(std::span<const std::string> usages, std::string_view spec) {
  const auto name = [](std::string_view text) { return text.substr(0, text.find(':')); };
  for (const std::string& usage : usages) {
    if (name(usage) == name(spec)) return;
  }
  Throw(ErrorKind::kInput, "expected {}, found {}", NameList(usages, std::identity(), " or "),
        Quote(spec));
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
  std::vector<std::string> usages = Names(AllPolicies(), &PolicyKind::usage);
  usages.emplace_back(kRecomputeUsage);
  line.Add({.names = "--kv",
            .value = "SPEC",
            .help = "what is kept of the text. " + policies,
            .fallback = options.kv,
            .choices = usages},
           [&options, usages](const std::string& value) {
             RefuseUnknownPolicy(usages, value);
             options.kv = value;
           });
  line.Add({.names = "--kv-type",
            .value = "TYPE",
            .help = "how it is kept: " + NameList(KvTypeNames(), std::identity(), " or ") +
                    " (auto: as the layers where they are f32 or f16, else bf16)",
            .fallback = options.kv_type,
            .choices = KvTypeNames()},
           [&options](const std::string& value) {
             ParseKvType(value);
             options.kv_type = value;
           });
  line.Add({.names = "--int8-attention",
            .value = "",
            .help = "with --kv-type int8: attention multiplies int8 too, queries and weights being "
                    "quantized as they are made"},
           options.int8_attention);
  line.AddInt({.names = "-ub,--ubatch-size",
               .value = "N",
               .help = "read the prompt in pieces of N tokens; changes speed and memory, never the "
                       "result"},
              options.chunk_tokens, 1, 1 << 20);
}

int64_t CheckKvOptions(const DecoderSpec& spec, const SessionOptions& options) {
  const DType kv_type = ParseKvType(options.kv_type).value_or(DType::kBF16);
  return MostKept(Geometry(spec), {.spec = options.kv,
                                   .kv_type = kv_type,
                                   .int8_products = options.int8_attention,
                                   .context = options.context_tokens == 0 ? DefaultContext(spec)
                                                                          : options.context_tokens,
                                   .max_step_tokens = options.chunk_tokens});
}

}  // namespace godwit::cli
