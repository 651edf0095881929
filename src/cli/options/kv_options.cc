#include "cli/options/kv_options.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "attention/make_policy.h"
#include "attention/policies/choose_prefill.h"
#include "attention/policies/prefill_spec.h"
#include "base/error.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "cli/options/recompute_spec.h"
#include "engine/storage_types.h"

namespace godwit::cli {
namespace {

std::string_view NameIn(std::string_view spec) { return spec.substr(0, spec.find(':')); }

// Here, since the session comes after the weights.
void RefuseUnknownPolicy(std::span<const std::string> usages, std::string_view spec) {
  for (const std::string& usage : usages) {
    if (NameIn(usage) == NameIn(spec)) return;
  }
  RefuseRecompute(spec);
  Throw(ErrorKind::kInput, "expected {}, found {}", NameList(usages, std::identity(), " or "),
        Quote(spec));
}

// Before the weights are read, "auto" is taken for what it is for most models.
DType KvTypeOf(const SessionOptions& options) {
  return ParseKvType(options.kv_type).value_or(DType::kBF16);
}

std::optional<bool> ParseInt8Attention(std::string_view when) {
  if (when == "on") return true;
  if (when == "off") return false;
  if (when != "auto") Throw(ErrorKind::kInput, "expected auto, on or off, found {}", Quote(when));
  return {};
}

// Of the length of texts.
void AddLengthFlags(console::CommandLine& line, SessionOptions& options, KvMemory& memory) {
  line.Group("Context");
  line.AddInt({.names = "-c,--ctx-size",
               .value = "N",
               .help = "longest text, prompt and output, in tokens (0: what the model allows)"},
              options.context_tokens, 0);
  AddKvMemoryFlags(line, memory);
}

// kvs: where --kv may be repeated.
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
            .help = "what is kept of the text. " + policies +
                    (is_verbs_own ? "" : "; godwit inspect --kv SPEC explains one") +
                    (kvs == nullptr ? "" : "; may be repeated, to compare them"),
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
            .help = "how it is kept: " + NameList(KvTypeNames(), std::identity(), " or ") +
                    " (auto: as the layers where they are f32 or f16, else bf16; k8v4: keys in 8 "
                    "bits, values in 4)",
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
       .help =
           "auto (with --kv-type int8, k8v4 or int4), on or off: attention multiplies int8 too, "
           "queries and weights being quantized as they are made",
       .fallback = "auto",
       .choices = {"auto", "on", "off"}},
      [&options](const std::string& value) { options.int8_attention = ParseInt8Attention(value); });
  line.AddInt({.names = "-ub,--ubatch-size",
               .value = "N",
               .help = "read the prompt in pieces of N tokens; changes speed and memory, never the "
                       "result"},
              options.chunk_tokens, 1, 1 << 20);
}

// Behind the last colon, what begins with a digit is the size.
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
  line.Add({.names = "--kv-memory",
            .value = "BYTES",
            .help = "what the caches of all texts may take together, as 8G or 512M; with "
                    "--kv-file, of memory",
            .fallback = "what the machine, or the container, has left"},
           [&memory](const std::string& value) { memory.bytes = console::ParseBytes(value); });
  line.Add({.names = "--kv-file",
            .value = "PATH[:SIZE]",
            .help = "keep the caches in a file, and what was used last in memory, too: a new file, "
                    "or a nameless one in the folder PATH, that is gone when the program ends. For "
                    "contexts larger than memory, of which --kv blocks reads a part; the same "
                    "result. SIZE: what it may take, as 100G",
            .fallback = "in memory; SIZE: what the disk has left"},
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
       .help = "how all of a prompt but its question is read: by window:W each token sees the "
               "W before it, by star its block and the anchor, the first tokens of the text; "
               "--kv still says what is kept, and what the question and the answer see of it; "
               "another result, in less time; by ring the ranks of mpirun read together, and "
               "each token sees all before it; auto: on ranks by ring if they are sent keys as "
               "fast as they attend to them, else by star, and on one host as --kv has it",
       .fallback = "as --kv has it",
       .choices = {"window:W", "star:block=N,anchor=N,overlap=N,tail=N,by-speed", "ring:chunk=N",
                   "auto"}},
      [&options](const std::string& value) {
        if (value != kAutoPrefill) ParsePrefill(value);
        options.prefill = value;
      });
}

void AddPrefillFlags(console::CommandLine& line, SessionOptions& options, int64_t& query_tokens,
                     std::string fallback) {
  AddPrefillFlag(line, options);
  line.AddInt({.names = "--query-tokens",
               .value = "N",
               .help = "with --prefill or --kv blocks: the question is the last N tokens of the "
                       "prompt",
               .fallback = std::move(fallback)},
              query_tokens, 1);
}

void RequireUseOfQueryTokens(std::span<const std::string> prefills,
                             std::span<const std::string> kvs) {
  const auto reads_apart = [](const std::string& prefill) { return !prefill.empty(); };
  const auto chooses = [](const std::string& kv) { return NameIn(kv) == "blocks"; };
  if (std::any_of(prefills.begin(), prefills.end(), reads_apart) ||
      std::any_of(kvs.begin(), kvs.end(), chooses)) {
    return;
  }
  Throw(ErrorKind::kInput,
        "--query-tokens would change nothing: with --kv {} a question sees what all tokens see; it "
        "is for --prefill and --kv blocks",
        kvs.front());
}

int64_t CheckKvOptions(const DecoderSpec& spec, const SessionOptions& options) {
  SessionOptions session = options;
  if (const auto window = RecomputeWindow(options.kv)) {
    session.kv = "dense";
    session.context_tokens = *window;
  }
  const DType kv_type = KvTypeOf(session);
  return MakePolicy(Geometry(spec),
                    {.spec = session.kv,
                     .kv_type = kv_type,
                     .int8_products = ChooseInt8Attention(session.int8_attention, kv_type),
                     .context = session.context_tokens == 0 ? DefaultContext(spec)
                                                            : session.context_tokens,
                     .prefill = session.prefill})
      ->max_kept_tokens();
}

int64_t TextsAtOnce(const Engine& engine, const SessionOptions& options) {
  constexpr int64_t kUsualTokens = 4096, kMaxTexts = 32;
  return std::clamp<int64_t>(engine.kv_memory_bytes() / engine.KvBytes(kUsualTokens, options), 1,
                             kMaxTexts);
}

}  // namespace godwit::cli
