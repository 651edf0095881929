#include "console/options/foreign_flags.h"

#include <algorithm>

#include "console/options/parse_value.h"

namespace godwit::console {
namespace {

struct ForeignFlag {
  std::string_view names;
  std::string_view ours;  // empty: nothing replaces it
  std::string_view about;
};

constexpr std::string_view kSteps = "-ub sets the tokens of a prompt that one step processes";
constexpr std::string_view kOneKvType = "--kv-type sets the type of both keys and values";

constexpr std::string_view kSystemFlags = "-sys,--system,--system-prompt";
constexpr std::string_view kVerboseFlags =
    "-v,--verbose,--log-verbose,-lv,--verbosity,--log-verbosity";

// Flags of other programs. An entry counts if the verb has its replacement; the first one wins.
constexpr ForeignFlag kForeignFlags[] = {
    {"--nll", "--jsonl", "it is called --jsonl now"},
    {"--jsonl", "--output", "it is called -o now"},
    {"--tokens", "--max-tokens", "it is called --max-tokens now"},
    {"-ngl,--gpu-layers,--n-gpu-layers,-sm,--split-mode,-mg,--main-gpu,-ts,--tensor-split,-dev,"
     "--device,--list-devices,-ot,--override-tensor,-cmoe,--cpu-moe,-ncmoe,--n-cpu-moe,-nkvo,"
     "--no-kv-offload,--tensor-parallel-size,--gpu-memory-utilization",
     "", "models run on the processor; GPUs are not supported"},
    {"-fa,--flash-attn", "",
     "attention always works in this way, without storing whole rows of scores"},
    {"--mlock,--no-mmap,--mmap", "",
     "weights are always copied into memory while loading, in the order of their use"},
    {"-hf,-hfr,--hf-repo", "--model",
     "-m ORG/NAME[:QUANT] loads a model from the Hugging Face cache"},
    {"-mu,--model-url", "--model", "-m takes downloaded models only"},
    {"-a,--alias,--served-model-name", "",
     "the name of a model is that of its folder, or its name in the Hugging Face cache"},
    {"--lora,--lora-scaled,--lora-init-without-apply,--control-vector,--control-vector-scaled", "",
     "adapters are not supported; merge them into the weights, and load that model with -m"},
    {"-mm,--mmproj,--image", "", "models read text only, no pictures"},
    {"--rope-scale,--rope-scaling,--rope-freq-base,--rope-freq-scale,--yarn-orig-ctx,"
     "--yarn-ext-factor,--yarn-attn-factor,--yarn-beta-slow,--yarn-beta-fast",
     "", "rope_scaling in the model's config.json sets the scaling of positions"},
    {"--max-model-len,--max-seq-len,--num-ctx", "--ctx-size", "-c sets the longest text"},
    {"--dtype,--quantization", "--weights", "--weights sets the type of weights"},
    {"-ctk,--cache-type-k,-ctv,--cache-type-v", "--kv-type", kOneKvType},
    {"--keep", "--kv",
     "everything is kept, unless --kv says otherwise: --kv sinks:4+2044,pin=N keeps the first N "
     "tokens"},
    {"--context-shift,--no-context-shift", "--kv",
     "everything is kept, unless --kv says otherwise: --kv sinks:4+2044 forgets the middle of a "
     "text"},
    {"--prompt-cache,--prompt-cache-all,--prompt-cache-ro,--slot-save-path,--cache-reuse",
     "--cache", "--cache saves all texts that are read, and continues from them the next time"},
    {"-b,--batch-size", "--ubatch-size", kSteps},
    {"-cb,--cont-batching,-nocb,--no-cont-batching", "--parallel", "requests always share steps"},
    {"-tb,--threads-batch", "--threads", "-t also applies to prompt processing"},
    {"-C,--cpu-mask,-Cr,--cpu-range,--cpu-strict,--prio,--poll", "--numa",
     "the system places threads; --numa distribute pins them"},
    {"-hfd,--hf-repo-draft", "--model-draft", "-md also takes ORG/NAME"},
    {"-cd,--ctx-size-draft,-ngld,--gpu-layers-draft,--draft-max,--draft-min,--draft-n,"
     "--draft-p-min",
     "--model-draft", "-md drafts as many tokens as save time"},
    {"--grammar,--grammar-file", "--json-schema",
     "-j takes a JSON schema; other grammars are not supported"},
    {"-jf", "--json-schema-file", "it is called --json-schema-file"},
    {"--mirostat,--mirostat-ent,--mirostat-lr,--dry-multiplier,--dry-base,--dry-allowed-length,"
     "--dry-penalty-last-n,--xtc-probability,--xtc-threshold,--typical,--top-nsigma,"
     "--dynatemp-range,--dynatemp-exp",
     "--samplers", "the sampler has penalties, top-k, top-p, min-p, eta and temperature"},
    {"--max-tokens,--max-new-tokens", "--predict", "-n sets the most tokens of an answer"},
    {"-to", "--timeout", "it is called --timeout"},
    {"--api-key", "--api-key-file",
     "--api-key-file reads keys from a file, so that no list of processes shows them"},
    {"--metrics", "--host", "/metrics is always on"},
    {"--jinja,--no-jinja", "", "chat templates are always Jinja"},
    {"--chat-template-file", "--chat-template", "--chat-template also takes a file"},
    {"--system-prompt", "--system", "it is called -sys"},
    {"-sysf,--system-prompt-file", "--system", "-sys \"$(cat FILE)\" reads it from a file"},
    {kSystemFlags, "--kv-choice", "each request has its own system message"},
    {kSystemFlags, "--chat", "tasks have prompts of their own"},
    {kSystemFlags, "", "godwit chat and godwit run --chat take a system message"},
    {"-cnv,--conversation,-i,--interactive", "", "use godwit chat for a conversation"},
    {"-no-cnv,--no-conversation", "", "only godwit chat holds a conversation"},
    {"-st,--single-turn", "", "godwit run --chat answers one question"},
    {"-p,--prompt", "--history",
     "questions are typed or piped in; godwit run --chat -p asks a single one"},
    {"-mli,--multiline-input", "--history",
     "a line that ends with \\ continues in the next one, and \"\"\" encloses several lines"},
    {"--no-display-prompt,--display-prompt", "", "only the new text is printed, never the prompt"},
    {"--color", "", "there are no colours"},
    {"--log-disable", "--quiet", "-q prints only the result and errors"},
    {kVerboseFlags, "--log-json", "every request is logged; --log-json logs it as a line of JSON"},
    {kVerboseFlags, "--json", "--json prints all numbers; godwit --version prints the version"},
    {kVerboseFlags, "", "there is no further output; godwit --version prints the version"},
};

}  // namespace

std::optional<std::string_view> AboutForeignFlag(std::string_view name,
                                                 const std::function<bool(std::string_view)>& has) {
  for (const ForeignFlag& flag : kForeignFlags) {
    const auto names = SplitAtCommas(flag.names);
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    if (flag.ours.empty() || has(flag.ours)) return flag.about;
  }
  return std::nullopt;
}

}  // namespace godwit::console
