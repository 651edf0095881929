#include "console/options/foreign_flags.h"

#include <algorithm>

#include "console/options/parse_value.h"

namespace godwit::console {
namespace {

struct ForeignFlag {
  std::string_view names;
  std::string_view ours;  // empty: nothing takes its place
  std::string_view about;
};

constexpr std::string_view kSteps = "-ub sets how many tokens of a prompt are read in one step";
constexpr std::string_view kOneKvType = "--kv-type is the type of keys and values alike";

constexpr ForeignFlag kForeignFlags[] = {
    {"--nll", "--jsonl", "its name is --jsonl now"},
    {"--jsonl", "--output", "its name is -o now"},
    {"--tokens", "--max-tokens", "its name is --max-tokens now"},
    {"-ngl,--gpu-layers,--n-gpu-layers,-sm,--split-mode,-mg,--main-gpu", "",
     "models run on the processor, GPUs are not supported"},
    {"-fa,--flash-attn", "", "attention never holds a whole row of scores, whatever is asked"},
    {"--mlock,--no-mmap,--mmap", "",
     "weights are always copied into memory as they are loaded, in the order of their use"},
    {"-hf,-hfr,--hf-repo", "--model",
     "-m ORG/NAME[:QUANT] takes a model of the Hugging Face cache"},
    {"-mu,--model-url", "--model", "-m takes models that are downloaded already"},
    {"-ctk,--cache-type-k,-ctv,--cache-type-v", "--kv-type", kOneKvType},
    {"-b,--batch-size", "--ubatch-size", kSteps},
    {"-tb,--threads-batch", "--threads", "-t holds for prompts, too"},
    {"-cnv,--conversation,-i,--interactive", "", "godwit chat talks"},
    {"-no-cnv,--no-conversation", "", "only godwit chat talks"},
    {"--log-disable", "--quiet", "-q leaves out all but the result and errors"},
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
