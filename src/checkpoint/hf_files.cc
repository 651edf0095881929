#include "checkpoint/hf_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/open_file.h"
#include "checkpoint/gguf_tokenizer.h"
#include "model/draft_heads.h"

namespace godwit {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

// Classes of transformers by model_type, for every family whose GGUF files can be read.
struct ModelClass {
  std::string_view model_type, name;
};
constexpr ModelClass kClasses[] = {{"apertus", "ApertusForCausalLM"},
                                   {"bloom", "BloomForCausalLM"},
                                   {"cohere", "CohereForCausalLM"},
                                   {"cohere2", "Cohere2ForCausalLM"},
                                   {"deepseek_v2", "DeepseekV2ForCausalLM"},
                                   {"deepseek_v3", "DeepseekV3ForCausalLM"},
                                   {"ernie4_5", "Ernie4_5ForCausalLM"},
                                   {"ernie4_5_moe", "Ernie4_5_MoeForCausalLM"},
                                   {"mistral4", "Mistral4ForCausalLM"},
                                   {"exaone4", "Exaone4ForCausalLM"},
                                   {"falcon", "FalconForCausalLM"},
                                   {"gemma", "GemmaForCausalLM"},
                                   {"gemma2", "Gemma2ForCausalLM"},
                                   {"gemma3_text", "Gemma3ForCausalLM"},
                                   {"gemma3n_text", "Gemma3nForCausalLM"},
                                   {"gemma4_text", "Gemma4ForCausalLM"},
                                   {"glm4", "Glm4ForCausalLM"},
                                   {"glm4_moe", "Glm4MoeForCausalLM"},
                                   {"gpt_neox", "GPTNeoXForCausalLM"},
                                   {"gpt_oss", "GptOssForCausalLM"},
                                   {"granite", "GraniteForCausalLM"},
                                   {"granitemoe", "GraniteMoeForCausalLM"},
                                   {"granitemoeshared", "GraniteMoeSharedForCausalLM"},
                                   {"hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM"},
                                   {"hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM"},
                                   {"lfm2", "Lfm2ForCausalLM"},
                                   {"lfm2_moe", "Lfm2MoeForCausalLM"},
                                   {"llama", "LlamaForCausalLM"},
                                   {"llama4_text", "Llama4ForCausalLM"},
                                   {"minimax_m2", "MiniMaxM2ForCausalLM"},
                                   {"mistral", "MistralForCausalLM"},
                                   {"mixtral", "MixtralForCausalLM"},
                                   {"mpt", "MptForCausalLM"},
                                   {"olmo", "OlmoForCausalLM"},
                                   {"olmo2", "Olmo2ForCausalLM"},
                                   {"olmo3", "Olmo3ForCausalLM"},
                                   {"phi3", "Phi3ForCausalLM"},
                                   {"qwen2", "Qwen2ForCausalLM"},
                                   {"qwen3", "Qwen3ForCausalLM"},
                                   {"qwen3_moe", "Qwen3MoeForCausalLM"},
                                   {"seed_oss", "SeedOssForCausalLM"},
                                   {"stablelm", "StableLmForCausalLM"},
                                   {"starcoder2", "Starcoder2ForCausalLM"}};

constexpr const char* kGainOffset = "norm_gain_offset";

const char* TorchName(DType dtype) {
  return dtype == DType::kF32 ? "float32" : dtype == DType::kF16 ? "float16" : "bfloat16";
}

DType TypeOfMatrices(const WeightSource& weights) {
  std::optional<DType> type;
  for (const std::string& name : weights.Names()) {
    const TensorInfo& tensor = *weights.Find(name);
    if (tensor.blocks != nullptr) return DType::kBF16;
    if (!type && tensor.shape.size() == 2) type = tensor.dtype;
  }
  return type.value_or(DType::kBF16);
}

// Moves fields to where Phi3Config wants them: it takes three, the original context stands beside
// them, and the attention factor follows from both contexts.
void PutLongRope(json& config) {
  json& scaling = config["rope_scaling"];
  const auto original = scaling["original_max_position_embeddings"].get<double>();
  config["original_max_position_embeddings"] = scaling["original_max_position_embeddings"];
  json three{{"type", "longrope"},
             {"long_factor", scaling["long_factor"]},
             {"short_factor", scaling["short_factor"]}};
  if (scaling.contains("attention_factor")) {
    const double stretched = config["max_position_embeddings"].get<double>() / original;
    const double usual =
        stretched <= 1 ? 1 : std::sqrt(1 + std::log(stretched) / std::log(original));
    const auto said = scaling["attention_factor"].get<double>();
    if (std::abs(said - usual) > 1e-5) three["attention_factor"] = said;
  }
  scaling = std::move(three);
}

// Makes a number an integer: configs of transformers refuse 9.0 where they want 9.
void MakeWhole(json& number) {
  if (!number.is_number_float()) return;
  const double value = number.get<double>();
  if (value == std::floor(value) && std::abs(value) < 1e15) number = static_cast<int64_t>(value);
}

void PutTokenIds(const TokenizerConfig& tokens, json& config) {
  config["bos_token_id"] = tokens.bos_id ? json(*tokens.bos_id) : json();
  const std::vector<int32_t>& ends = tokens.eos_ids;
  config["eos_token_id"] = ends.empty() ? json() : ends.size() == 1 ? json(ends[0]) : json(ends);
}

void WriteText(const fs::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  if (!file) ThrowErrno(path, "write");
}

template <typename Json>
void WriteJsonFile(const fs::path& path, const Json& content) {
  WriteText(path, DumpJson(content, 2) + "\n");
}

ordered_json TokenizerConfigOf(const ModelFolder& model) {
  ordered_json config{{"tokenizer_class", "PreTrainedTokenizerFast"},
                      {"clean_up_tokenization_spaces", false},
                      {"model_max_length", model.spec().max_context}};
  for (const auto& [key, token] : model.tokenizer_config().named_tokens) config[key] = token;
  const auto templates = GgufChatTemplates(model.gguf_metadata());
  if (templates.size() == 1 && templates.contains("default")) {
    config["chat_template"] = templates.begin()->second;
    return config;
  }
  for (const auto& [name, text] : templates) {
    config["chat_template"].push_back({{"name", name}, {"template", text}});
  }
  return config;
}

}  // namespace

json HfConfigOf(const ModelFolder& model) {
  json config = ParseJson(model.gguf_config(), model.path());
  const auto found =
      std::ranges::find(kClasses, config["model_type"].get<std::string>(), &ModelClass::model_type);
  if (found != std::end(kClasses)) config["architectures"] = {found->name};
  // For Gemma this is the type to which the scale of its embeddings is rounded.
  config["torch_dtype"] =
      config.contains("dtype") ? config["dtype"] : json(TorchName(TypeOfMatrices(model.weights())));
  config.erase("dtype");
  config.erase(kGainOffset);
  PutTokenIds(model.tokenizer_config(), config);
  if (config.contains("sliding_window")) MakeWhole(config["sliding_window"]);
  if (config.contains("attn_config")) MakeWhole(config["attn_config"]["alibi_bias_max"]);
  const json& scaling = config["rope_scaling"];
  if (scaling.is_object() && scaling["rope_type"] == "longrope") PutLongRope(config);
  return config;
}

void RequireHfForm(const ModelFolder& model) {
  if (!model.is_gguf() || !model.config().Has("decay_rates_negated")) return;
  Throw(ErrorKind::kUnsupported,
        "{}: the recurrent layers of this {} model lie otherwise in a GGUF file: expected the "
        "model's folder with *.safetensors",
        model.path(), model.spec().family);
}

bool GainsAreWhole(const ModelFolder& model) {
  return model.is_gguf() && model.config().Has(kGainOffset);
}

void WriteHfFiles(const ModelFolder& model, const fs::path& folder,
                  const std::function<void(const std::string& message)>& warn) {
  const json config = HfConfigOf(model);
  WriteJsonFile(folder / "config.json", config);
  WriteJsonFile(folder / "generation_config.json",
                ordered_json{{"bos_token_id", config["bos_token_id"]},
                             {"eos_token_id", config["eos_token_id"]}});
  if (model.has_tokenizer()) {
    WriteText(folder / "tokenizer.json", model.tokenizer_json());
    WriteJsonFile(folder / "tokenizer_config.json", TokenizerConfigOf(model));
  } else if (model.tokenizer_file() && warn) {
    warn(fmt::format("{}: its tokenizer is not supported, so the result has none", model.path()));
  }
  const fs::path heads = model.draft_heads_file();
  if (!IsListed(heads)) return;
  std::error_code error;
  fs::copy_file(heads, folder / DraftHeads::kFileName, error);
  if (!error) return;
  Throw(ErrorKind::kIo, "{}: cannot copy {} there: {}", folder.native(), heads.native(),
        error.message());
}

}  // namespace godwit
