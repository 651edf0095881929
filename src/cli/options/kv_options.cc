#include "cli/options/kv_options.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "attention/make_policy.h"
#include "attention/policies/prefill_spec.h"
#include "attention/ranks/choose_prefill.h"
#include "base/error.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "cli/options/recompute_spec.h"
#include "engine/policy_options.h"
#include "engine/storage_types.h"

namespace godwit::cli {
namespace {

std::string_view NameIn(std::string_view spec) { return spec.substr(0, spec.find(':')); }

// The check is here, because the session is made after the weights are read.
void RefuseUnknownPolicy(std::span<const std::string> usages, std::string_view spec) {
  for (const std::string& usage : usages) {
    if (NameIn(usage) == NameIn(spec)) return;
  }
  RefuseRecompute(spec);
  Throw(ErrorKind::kInput, "expected {}, found {}", NameList(usages, std::identity(), " or "),
        Quote(spec));
}

// The types before the weights are read: a KV type "auto" counts as the one that most models get.
constexpr WeightTypes kUsualWeights{.layers = DType::kBF16, .head = DType::kBF16};

std::optional<bool> ParseInt8Attention(std::string_view when) {
  if (when == "on") return true;
  if (when == "off") return false;
  if (when != "auto") Throw(ErrorKind::kInput, "expected auto, on or off, found {}", Quote(when));
  return {};
}

// Flags for the length of texts.
void AddLengthFlags(console::CommandLine& line, SessionOptions& options, KvMemory& memory) {
  line.Group("Context");
  line.AddInt(
      {.names = "-c,--ctx-size",
       .value = "N",
       .help = "the longest text in tokens, prompt and output together (0: the model's maximum)"},
      options.context_tokens, 0);
  AddKvMemoryFlags(line, memory);
}

// kvs: set if --kv may be repeated.
void AddSpecFlags(console::CommandLine& line, SessionOptions& options, bool takes_recompute,
                  std::vector<std::string>* kvs, bool is_verbs_own = false) {
  std::string policies;
  for (const PolicyKind& kind : AllPolicies()) {
    policies += fmt::format("{}{}: {}", policies.empty() ? "" : "; ", kind.usage, kind.description);
  }
  std::vector<std::string> usages = Names(AllPolicies(), &PolicyKind::usage);
  if (takes_recompute) {
    policies += fmt::format("; {}: {}", kRecomputeUsage, kRecomputeDescription);
    usages.emplace_back(kRecomputeUsage);
  }
  line.Add({.names = "--kv",
            .value = "SPEC",
            .help = "the cache policy: the tokens that the KV cache keeps and attention sees. " +
                    policies + (is_verbs_own ? "" : "; godwit inspect --kv SPEC explains one") +
                    (kvs == nullptr ? "" : "; may be repeated to compare policies"),
            .fallback = is_verbs_own ? "" : options.kv,
            .choices = usages,
            .is_verbs_own = is_verbs_own,
            .repeats = kvs != nullptr},
           [&options, usages, kvs](const std::string& value) {
             RefuseUnknownPolicy(usages, value);
             options.kv = value;
             if (kvs != nullptr) kvs->push_back(value);
           });
  line.Add({.names = "--kv-type",
            .value = "TYPE",
            .help = "the number type of cached keys and values: " +
                    NameList(KvTypeNames(), std::identity(), " or ") +
                    " (auto: the type of the layers if that is f32 or f16, else bf16; k8v4: keys "
                    "in 8 bits, values in 4)",
            .fallback = options.kv_type,
            .choices = KvTypeNames()},
           [&options](const std::string& value) {
             ParseKvType(value);
             options.kv_type = value;
           });
}

void AddCacheFlags(console::CommandLine& line, SessionOptions& options, bool takes_recompute,
                   std::vector<std::string>* kvs) {
  AddSpecFlags(line, options, takes_recompute, kvs);
  line.Add(
      {.names = "--int8-attention",
       .value = "WHEN",
       .help = "whether attention multiplies in int8, with queries and attention weights quantized "
               "on the fly: on, off, or auto (on with --kv-type int8, k8v4 or int4)",
       .fallback = "auto",
       .choices = {"auto", "on", "off"}},
      [&options](const std::string& value) { options.int8_attention = ParseInt8Attention(value); });
  line.AddInt(
      {.names = "-ub,--ubatch-size",
       .value = "N",
       .help =
           "process the prompt in chunks of N tokens; changes speed and memory, never the result"},
      options.chunk_tokens, 1, 1 << 20);
}

// A part behind the last colon that begins with a digit is the size.
void ParseKvFile(const std::string& value, KvMemory& memory) {
  const size_t colon = value.rfind(':');
  const bool sized = colon != std::string::npos && colon + 1 < value.size() &&
                     value[colon + 1] >= '0' && value[colon + 1] <= '9';
  memory.file = sized ? value.substr(0, colon) : value;
  memory.file_bytes = sized ? console::ParseBytes(value.substr(colon + 1)) : 0;
  if (memory.file.empty()) {
    Throw(ErrorKind::kInput, "expected PATH or PATH:SIZE, found {}", Quote(value));
  }
}

}  // namespace

void AddKvMemoryFlags(console::CommandLine& line, KvMemory& memory) {
  line.Add(
      {.names = "--kv-memory",
       .value = "BYTES",
       .help = "the limit of memory for the KV caches of all texts together, such as 8G or 512M",
       .fallback = "the free memory of the machine or container"},
      [&memory](const std::string& value) { memory.bytes = console::ParseBytes(value); });
  line.Add({.names = "--kv-file",
            .value = "PATH[:SIZE]",
            .help = "keep the KV caches in a file, and the pages used last also in memory. For "
                    "contexts larger than memory, of which --kv blocks reads a part; never changes "
                    "the result. PATH is a new file, or a folder for a nameless one; the file is "
                    "gone when the program ends. SIZE limits it, such as 100G",
            .fallback = "in memory; SIZE: the free disk space"},
           [&memory](const std::string& value) { ParseKvFile(value, memory); });
}

void AddKvFlags(console::CommandLine& line, SessionOptions& options, KvMemory& memory,
                bool takes_recompute) {
  AddLengthFlags(line, options, memory);
  AddCacheFlags(line, options, takes_recompute, /*kvs=*/nullptr);
}

void AddComparedKvFlags(console::CommandLine& line, SessionOptions& options, KvMemory& memory,
                        std::vector<std::string>& kvs, bool takes_recompute) {
  AddLengthFlags(line, options, memory);
  AddCacheFlags(line, options, takes_recompute, &kvs);
}

void AddKvCacheFlags(console::CommandLine& line, SessionOptions& options, bool takes_recompute) {
  AddCacheFlags(line, options, takes_recompute, /*kvs=*/nullptr);
}

void AddComparedKvCacheFlags(console::CommandLine& line, SessionOptions& options,
                             std::vector<std::string>& kvs) {
  AddCacheFlags(line, options, /*takes_recompute=*/false, &kvs);
}

void AddExplainedKvFlags(console::CommandLine& line, SessionOptions& options,
                         std::vector<std::string>& kvs) {
  AddSpecFlags(line, options, /*takes_recompute=*/true, &kvs, /*is_verbs_own=*/true);
}

void AddPrefillFlag(console::CommandLine& line, SessionOptions& options) {
  line.Add(
      {.names = "--prefill",
       .value = "SPEC",
       .help =
           "the attention that reads the context, which is the prompt without its question. "
           "window:W: a token sees the W tokens before it. star: a token sees its own block "
           "and the anchor, the first tokens of the text; block=quarter: a block is a "
           "quarter of the context, 32K at most. Both are faster and change the "
           "result; question and answer still follow --kv. ring: the ranks of mpirun read "
           "together, and a token sees all before it. gpu: the GPU of --device attends, with other "
           "rounding. auto: ring on ranks if the network sends "
           "keys as fast as attention reads them, else star; on one host the policy of --kv",
       .fallback = "the policy of --kv",
       .choices = {"window:W", "star:block=N,anchor=N,overlap=N,tail=N,by-speed",
                   "star:block=quarter", "ring:chunk=N", "gpu", "auto"}},
      [&options](const std::string& value) {
        if (value != kAutoPrefill) ParsePrefill(value);
        options.prefill = value;
      });
  line.AddInt({.names = "--gpu-window",
               .value = "N",
               .help = "the GPU of --device keeps and attends to N of the keys that a token sees: "
                       "those at the beginning that --kv blocks always shows, and the last ones. "
                       "The CPU attends to the others at the same time. With --kv blocks or "
                       "--prefill the question and the answer have it, else all tokens, with other "
                       "rounding. A multiple of 64",
               .fallback = "the CPU attends to all"},
              options.gpu_window, 64, int64_t{1} << 30);
}

void AddPrefillFlags(console::CommandLine& line, SessionOptions& options, int64_t& query_tokens,
                     std::string fallback) {
  AddPrefillFlag(line, options);
  line.AddInt(
      {.names = "--query-tokens",
       .value = "N",
       .help = "with --prefill or --kv blocks: the last N tokens of the prompt are the question",
       .fallback = std::move(fallback)},
      query_tokens, 1);
}

void RequireUseOfQueryTokens(std::span<const std::string> prefills,
                             std::span<const std::string> kvs) {
  const auto reads_apart = [](const std::string& prefill) { return !prefill.empty(); };
  const auto asks_apart = [](const std::string& kv) {
    return !RecomputeWindow(kv) && PolicyFactsOf(kv).separates_question;
  };
  if (std::any_of(prefills.begin(), prefills.end(), reads_apart) ||
      std::any_of(kvs.begin(), kvs.end(), asks_apart)) {
    return;
  }
  Throw(ErrorKind::kInput,
        "--query-tokens has no effect with --kv {}, where a question sees the same tokens as all "
        "others: use it with --prefill or --kv blocks, or leave it out",
        kvs.front());
}

int64_t CheckKvOptions(const DecoderSpec& spec, const SessionOptions& options) {
  SessionOptions session = options;
  if (const auto window = RecomputeWindow(options.kv)) {
    session.kv = "dense";
    session.context_tokens = *window;
  }
  return MakePolicy(Geometry(spec), PolicyOptionsOf(session, spec, kUsualWeights))
      ->facts()
      .max_kept_tokens;
}

int64_t TextsAtOnce(const Engine& engine, const SessionOptions& options) {
  constexpr int64_t kUsualTokens = 4096, kMaxTexts = 32;
  return std::clamp<int64_t>(engine.kv_memory_bytes() / engine.KvBytes(kUsualTokens, options), 1,
                             kMaxTexts);
}

}  // namespace godwit::cli
