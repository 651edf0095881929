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

constexpr std::string_view kSteps = "-ub sets how many tokens of a prompt are read in one step";
constexpr std::string_view kOneKvType = "--kv-type is the type of keys and values alike";

constexpr std::string_view kSystemFlags = "-sys,--system,--system-prompt";
constexpr std::string_view kVerboseFlags =
    "-v,--verbose,--log-verbose,-lv,--verbosity,--log-verbosity";

// Flags of other programs. An entry counts if the verb has its replacement; the first one wins.
constexpr ForeignFlag kForeignFlags[] = {
    {"--nll", "--jsonl", "its name is --jsonl now"},
    {"--jsonl", "--output", "its name is -o now"},
    {"--tokens", "--max-tokens", "its name is --max-tokens now"},
    {"-ngl,--gpu-layers,--n-gpu-layers,-sm,--split-mode,-mg,--main-gpu,-ts,--tensor-split,-dev,"
     "--device,--list-devices,-ot,--override-tensor,-cmoe,--cpu-moe,-ncmoe,--n-cpu-moe,-nkvo,"
     "--no-kv-offload,--tensor-parallel-size,--gpu-memory-utilization",
     "", "models run on the processor, GPUs are not supported"},
    {"-fa,--flash-attn", "", "attention never holds a whole row of scores, whatever is asked"},
    {"--mlock,--no-mmap,--mmap", "",
     "weights are always copied into memory as they are loaded, in the order of their use"},
    {"-hf,-hfr,--hf-repo", "--model",
     "-m ORG/NAME[:QUANT] takes a model of the Hugging Face cache"},
    {"-mu,--model-url", "--model", "-m takes models that are downloaded already"},
    {"-a,--alias,--served-model-name", "",
     "a model is called by its folder, or by its name in the Hugging Face cache"},
    {"--lora,--lora-scaled,--lora-init-without-apply,--control-vector,--control-vector-scaled", "",
     "adapters are not applied, -m takes a model into whose weights they are merged"},
    {"-mm,--mmproj,--image", "", "pictures are not read"},
    {"--rope-scale,--rope-scaling,--rope-freq-base,--rope-freq-scale,--yarn-orig-ctx,"
     "--yarn-ext-factor,--yarn-attn-factor,--yarn-beta-slow,--yarn-beta-fast",
     "", "positions are scaled as the model says, by rope_scaling in its config.json"},
    {"--max-model-len,--max-seq-len,--num-ctx", "--ctx-size", "-c is the longest text"},
    {"--dtype,--quantization", "--weights", "--weights says what they are loaded as"},
    {"-ctk,--cache-type-k,-ctv,--cache-type-v", "--kv-type", kOneKvType},
    {"--keep", "--kv",
     "all is kept, unless --kv forgets, and sinks:4+2044,pin=N then keeps the first N tokens"},
    {"--context-shift,--no-context-shift", "--kv",
     "all is kept, unless --kv forgets, as sinks:4+2044 does"},
    {"--prompt-cache,--prompt-cache-all,--prompt-cache-ro,--slot-save-path,--cache-reuse",
     "--cache", "--cache saves what is read of any text, and goes on from there the next time"},
    {"-b,--batch-size", "--ubatch-size", kSteps},
    {"-cb,--cont-batching,-nocb,--no-cont-batching", "--parallel", "requests always share steps"},
    {"-tb,--threads-batch", "--threads", "-t holds for prompts, too"},
    {"-C,--cpu-mask,-Cr,--cpu-range,--cpu-strict,--prio,--poll", "--numa",
     "the system places threads, and --numa distribute pins them"},
    {"-md,--model-draft,-hfd,--hf-repo-draft,-cd,--ctx-size-draft,-ngld,--gpu-layers-draft,"
     "--draft-max,--draft-min,--draft-n,--draft-p-min",
     "--draft", "--draft guesses without a second model, and as many tokens as pay"},
    {"--grammar,--grammar-file", "--json-schema",
     "-j takes a JSON schema, other grammars are not read"},
    {"-jf", "--json-schema-file", "its name is --json-schema-file"},
    {"--mirostat,--mirostat-ent,--mirostat-lr,--dry-multiplier,--dry-base,--dry-allowed-length,"
     "--dry-penalty-last-n,--xtc-probability,--xtc-threshold,--typical,--top-nsigma,"
     "--dynatemp-range,--dynatemp-exp",
     "--samplers", "there are penalties, top-k, top-p, min-p, eta and temperature"},
    {"--max-tokens,--max-new-tokens", "--predict", "-n says how many tokens there may be"},
    {"-to", "--timeout", "its name is --timeout"},
    {"--api-key", "--api-key-file",
     "--api-key-file takes keys from a file, where no list of processes shows them"},
    {"--metrics", "--host", "/metrics is always there"},
    {"--jinja,--no-jinja", "", "chat templates are always read as Jinja"},
    {"--chat-template-file", "--chat-template", "--chat-template takes a file, too"},
    {"--system-prompt", "--system", "its name is -sys"},
    {"-sysf,--system-prompt-file", "--system", "-sys \"$(cat FILE)\" takes it from a file"},
    {kSystemFlags, "--kv-choice", "each request brings its own system message"},
    {kSystemFlags, "--chat", "there is none here, as tasks have their own words"},
    {kSystemFlags, "", "godwit chat and godwit run --chat have one"},
    {"-cnv,--conversation,-i,--interactive", "", "godwit chat talks"},
    {"-no-cnv,--no-conversation", "", "only godwit chat talks"},
    {"-st,--single-turn", "", "godwit run --chat answers one question"},
    {"-p,--prompt", "--history",
     "here questions are typed, or piped in; godwit run --chat -p asks one"},
    {"-mli,--multiline-input", "--history",
     "a line that ends with \\ goes on, and \"\"\" stands around several"},
    {"--no-display-prompt,--display-prompt", "",
     "what follows a prompt is printed, and never the prompt"},
    {"--color", "", "answers have no colours"},
    {"--log-disable", "--quiet", "-q leaves out all but the result and errors"},
    {kVerboseFlags, "--log-json", "each request is logged, with --log-json as a line of JSON"},
    {kVerboseFlags, "--json", "--json tells all numbers; godwit --version is the version"},
    {kVerboseFlags, "", "all that there is to say is said; godwit --version is the version"},
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
