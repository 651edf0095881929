#include "model/archs/nearest_family.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "model/archs/all.h"
#include "model/unread_keys.h"

namespace godwit {
namespace {

// Keys that do not change the function of a model.
constexpr std::array kBookkeeping = std::to_array<std::string_view>({"_attn_implementation",
                                                                     "_from_model_config",
                                                                     "_name_or_path",
                                                                     "architectures",
                                                                     "auto_map",
                                                                     "dtype",
                                                                     "ep_size",
                                                                     "gradient_checkpointing",
                                                                     "model_max_length",
                                                                     "model_type",
                                                                     "output_router_logits",
                                                                     "pretraining_tp",
                                                                     "quantization_config",
                                                                     "return_dict",
                                                                     "seq_aux",
                                                                     "task_specific_params",
                                                                     "tokenizer_class",
                                                                     "torch_dtype",
                                                                     "transformers_version",
                                                                     "use_cache"});
constexpr std::array kBookkeepingParts = std::to_array<std::string_view>(
    {"aux_loss", "dropout", "initializer", "jitter", "pdrop", "summary_", "token_id"});

bool IsBookkeeping(std::string_view key) {
  return std::ranges::find(kBookkeeping, key) != kBookkeeping.end() ||
         std::ranges::any_of(kBookkeepingParts, [&](std::string_view part) {
           return key.find(part) != std::string_view::npos;
         });
}

// A config without these keys gets the family's activation, even if the model has another.
constexpr std::array kActivationKeys =
    std::to_array<std::string_view>({"hidden_act", "activation_function", "hidden_activation"});

struct Candidate {
  NearestFamily family;
  int64_t read = 0;      // keys of the config
  bool misread = false;  // a needed key is missing, or an activation is not looked at
};

std::vector<std::string> UnreadKeys(const HfConfig& config) {
  std::vector<std::string> keys;
  for (const std::string& key : config.Keys()) {
    if (config.Has(key) && !config.WasRead(key) && !IsBookkeeping(key)) keys.push_back(key);
  }
  return keys;
}

constexpr int64_t kShownKeys = 8;

// The keys that nothing reads, of a config that a family has read.
std::string Missing(const HfConfig& config) {
  const std::vector<std::string> functions = UnreadFunctions(config);
  std::vector<std::string> unknown = UnreadKeys(config);
  for (std::string& key : unknown) key = QuoteUnlessPlain(key);
  std::string missing;
  if (!functions.empty()) missing = "has " + FirstNames(functions, kShownKeys);
  if (!unknown.empty()) {
    missing += fmt::format("{}has the unknown keys {}", missing.empty() ? "" : ", and ",
                           FirstNames(unknown, kShownKeys));
  }
  return missing;
}

Candidate Read(const Architecture& architecture, const HfConfig& shared) {
  const HfConfig config = shared.Unread();
  Candidate candidate{.family = {.model_type = architecture.model_type}};
  std::string refusal;
  try {
    candidate.family.spec = architecture.describe(config);
    candidate.misread = std::ranges::any_of(kActivationKeys, [&](std::string_view key) {
      return config.Has(key) && !config.WasRead(key);
    });
  } catch (const Error& error) {
    refusal = error.what();
    candidate.misread = error.kind() == ErrorKind::kFormat;
  }
  // Counting comes first, because reporting a key counts as reading it.
  for (const std::string& key : config.Keys()) {
    candidate.read += config.Has(key) && config.WasRead(key) && !IsBookkeeping(key);
  }
  candidate.family.missing = candidate.family.spec ? Missing(config) : refusal;
  return candidate;
}

// The object that describes the text model of a model with vision or sound, or none.
std::optional<std::pair<std::string_view, HfConfig>> TextConfig(const HfConfig& config) {
  for (const std::string_view key : {"text_config", "llm_config", "language_config"}) {
    if (!config.IsObject(key)) continue;
    HfConfig text = *config.Object(key);
    if (text.Has("model_type")) return std::pair(key, std::move(text));
  }
  return std::nullopt;
}

}  // namespace

NearestFamily FindNearestFamily(const HfConfig& config) {
  std::optional<Candidate> best;
  for (const Architecture& architecture : AllArchitectures()) {
    if (!architecture.text_config.empty()) continue;
    Candidate candidate = Read(architecture, config);
    const auto rank = [](const Candidate& c) { return std::pair(!c.misread, c.read); };
    if (!best || rank(candidate) > rank(*best)) best = std::move(candidate);
  }
  return std::move(best->family);
}

void RefuseFamily(const HfConfig& config, const NearestFamily& nearest, std::string_view tensors) {
  std::string text;
  if (const auto found = TextConfig(config)) {
    const auto& [key, inner] = *found;
    const std::string type = inner.StringOr("model_type", "");
    text = fmt::format("its {} is {} {}, which is not supported inside such a model", key,
                       FindArchitecture(type) ? "a supported" : "of model_type", Quote(type));
  } else {
    text = fmt::format("the nearest family is {}, {}{}{}", nearest.model_type,
                       !nearest.spec             ? "which refuses it: "
                       : nearest.missing.empty() ? "which knows all keys of its config.json"
                                                 : "but this one ",
                       nearest.missing, tensors.empty() ? "" : fmt::format("; {}", tensors));
  }
  Throw(ErrorKind::kUnsupported, "model_type {} is not supported: {}; supported are: {}",
        Quote(config.model_type()), text, NameList(AllArchitectures(), &Architecture::model_type));
}

}  // namespace godwit
