#include "model/archs/all.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "model/archs/families.h"
#include "model/archs/nearest_family.h"
#include "model/unread_keys.h"

namespace godwit {
namespace {

constexpr std::array kArchitectures = {
    Architecture{"llama", "Llama 1, 2, 3, 3.1, 3.2 and models of their shape", DescribeLlama},
    Architecture{"llama4_text", "Llama 4 (experts, chunks)", DescribeLlama4Text},
    Architecture{"llama4", "Llama 4 Scout and Maverick, which read no pictures here",
                 DescribeLlama4, /*text_config=*/"text_config"},
    Architecture{"mistral", "Mistral (sliding window)", DescribeMistral},
    Architecture{"ministral3", "Ministral 3 (queries that grow with the text)", DescribeMinistral3},
    Architecture{"mistral3", "Mistral Small 3.1 to 4 and Ministral 3, which read no pictures here",
                 DescribeMistral3, /*text_config=*/"text_config"},
    Architecture{"qwen2", "Qwen1.5, Qwen2, Qwen2.5", DescribeQwen2},
    Architecture{"qwen3", "Qwen3 (dense)", DescribeQwen3},
    Architecture{"qwen3_moe", "Qwen3 30B-A3B, 235B-A22B (experts)", DescribeQwen3Moe},
    Architecture{"qwen3_next", "Qwen3-Next, Qwen3-Coder-Next (gated DeltaNet, experts)",
                 DescribeQwen3Next},
    Architecture{"qwen3_5_text", "the text model of Qwen3.5 (gated DeltaNet)", DescribeQwen35Text},
    Architecture{"qwen3_5", "Qwen3.5 0.8B to 27B, which read no pictures here", DescribeQwen35,
                 /*text_config=*/"text_config"},
    Architecture{"qwen3_5_moe_text", "the text model of Qwen3.5 with experts",
                 DescribeQwen35MoeText},
    Architecture{"qwen3_5_moe", "Qwen3.5 35B-A3B to 397B-A17B, which read no pictures here",
                 DescribeQwen35Moe, /*text_config=*/"text_config"},
    Architecture{"internlm2", "InternLM2, InternLM2.5", DescribeInternLm2},
    Architecture{"gpt_neox", "GPT-NeoX, Pythia", DescribeGptNeox},
    Architecture{"falcon", "Falcon 7B, 11B, 40B, 180B, RW", DescribeFalcon},
    Architecture{"RefinedWebModel", "Falcon 7B and RW as first published", DescribeRefinedWebModel},
    Architecture{"RefinedWeb", "Falcon 40B as first published", DescribeRefinedWeb},
    Architecture{"mpt", "MPT (ALiBi)", DescribeMpt},
    Architecture{"opt", "OPT, Galactica (learned positions)", DescribeOpt},
    Architecture{"bloom", "BLOOM, BLOOMZ (ALiBi)", DescribeBloom},
    Architecture{"mixtral", "Mixtral (experts)", DescribeMixtral},
    Architecture{"glm", "GLM-4 9B as transformers stores it", DescribeGlm},
    Architecture{"glm4", "GLM-4-0414 9B and 32B", DescribeGlm4},
    Architecture{"glm4_moe", "GLM-4.5, 4.6 and 4.7, also Air (experts)", DescribeGlm4Moe},
    Architecture{"phi3", "Phi-3, Phi-3.5, Phi-4 (LongRoPE)", DescribePhi3},
    Architecture{"phimoe", "Phi-3.5 MoE (experts, LongRoPE)", DescribePhiMoe},
    Architecture{"smollm3", "SmolLM3 (layers without positions)", DescribeSmolLm3},
    Architecture{"lfm2", "LFM2 (short convolutions in most layers)", DescribeLfm2},
    Architecture{"lfm2_moe", "LFM2 8B-A1B (short convolutions, experts)", DescribeLfm2Moe},
    Architecture{"granite", "Granite 3 (dense)", DescribeGranite},
    Architecture{"granitemoe", "Granite 3 1B-A400M, 3B-A800M (experts)", DescribeGraniteMoe},
    Architecture{"granitemoeshared", "Granite with shared experts", DescribeGraniteMoeShared},
    Architecture{"granitemoehybrid", "Granite 4 H and Granite 4 (Mamba2, experts)",
                 DescribeGraniteMoeHybrid},
    Architecture{"bamba", "Bamba 9B (Mamba2)", DescribeBamba},
    Architecture{"falcon_h1", "Falcon-H1 0.5B to 34B (Mamba2 beside attention)", DescribeFalconH1},
    Architecture{"nemotron_h", "Nemotron-H, Nemotron Nano 2, Nemotron 3 Nano (Mamba2, experts)",
                 DescribeNemotronH},
    Architecture{"olmo", "OLMo 1", DescribeOlmo},
    Architecture{"olmo2", "OLMo 2", DescribeOlmo2},
    Architecture{"olmo3", "OLMo 3 (windows)", DescribeOlmo3},
    Architecture{"olmo_hybrid", "OLMo Hybrid 7B (gated DeltaNet)", DescribeOlmoHybrid},
    Architecture{"cohere", "Command R, R+, Aya", DescribeCohere},
    Architecture{"cohere2", "Command R7B, A (windows)", DescribeCohere2},
    Architecture{"stablelm", "StableLM 3B, 2 1.6B, 2 12B", DescribeStableLm},
    Architecture{"starcoder2", "StarCoder2", DescribeStarcoder2},
    Architecture{"gpt2", "GPT-2 (learned positions)", DescribeGpt2},
    Architecture{"gpt_oss", "gpt-oss (experts, learned sinks, windows)", DescribeGptOss},
    Architecture{"deepseek_v2", "DeepSeek V2, V2 Lite (latent attention)", DescribeDeepseekV2},
    Architecture{"deepseek_v3", "DeepSeek V3, R1 (latent attention)", DescribeDeepseekV3},
    Architecture{"deepseek_v32", "DeepSeek V3.2 (latent attention to keys of an index)",
                 DescribeDeepseekV32},
    Architecture{"glm_moe_dsa", "GLM-5 (latent attention to keys of an index)", DescribeGlmMoeDsa},
    Architecture{"kimi_k2", "Kimi K2 (as DeepSeek V3)", DescribeDeepseekV3},
    Architecture{"kimi_linear",
                 "Kimi Linear 48B-A3B (delta rule with decays of channels, latent attention)",
                 DescribeKimiLinear},
    Architecture{"mistral4", "Mistral Small 4 (latent attention, experts)", DescribeMistral4},
    Architecture{"minimax_m2", "MiniMax M2 (experts)", DescribeMiniMaxM2},
    Architecture{"seed_oss", "Seed-OSS 36B", DescribeSeedOss},
    Architecture{"exaone4", "EXAONE 4 (windows, layers without positions)", DescribeExaone4},
    Architecture{"hunyuan_v1_dense", "Hunyuan 0.5B to 7B (dense)", DescribeHunyuanDense},
    Architecture{"hunyuan_v1_moe", "Hunyuan A13B (experts)", DescribeHunyuanMoe},
    Architecture{"apertus", "Apertus 8B and 70B (xIELU)", DescribeApertus},
    Architecture{"ernie4_5", "ERNIE 4.5 0.3B (dense)", DescribeErnie45},
    Architecture{"ernie4_5_moe", "ERNIE 4.5 21B-A3B and 300B-A47B (experts)", DescribeErnie45Moe},
    Architecture{"gemma", "Gemma 1", DescribeGemma},
    Architecture{"gemma2", "Gemma 2 (windows, capped scores)", DescribeGemma2},
    Architecture{"gemma3_text", "Gemma 3 270M and 1B (windows)", DescribeGemma3Text},
    Architecture{"gemma3", "Gemma 3 4B, 12B and 27B, which read no pictures here", DescribeGemma3,
                 /*text_config=*/"text_config"},
    Architecture{"gemma3n_text", "the text model of Gemma 3n (AltUp, LAuReL, shared keys)",
                 DescribeGemma3nText},
    Architecture{"gemma3n", "Gemma 3n E2B and E4B, which neither see nor hear here",
                 DescribeGemma3n, /*text_config=*/"text_config"},
    Architecture{"gemma4_text", "the text model of Gemma 4 (heads of two sizes, shared keys)",
                 DescribeGemma4Text},
    Architecture{"gemma4", "Gemma 4 E2B to 31B, which neither see nor hear here", DescribeGemma4,
                 /*text_config=*/"text_config"},
};

}  // namespace

std::span<const Architecture> AllArchitectures() { return kArchitectures; }

const Architecture* FindArchitecture(std::string_view model_type) {
  const auto found = std::ranges::find(kArchitectures, model_type, &Architecture::model_type);
  return found == kArchitectures.end() ? nullptr : &*found;
}

DecoderSpec DescribeModel(const HfConfig& config) {
  const Architecture* architecture = FindArchitecture(config.model_type());
  if (architecture == nullptr) RefuseFamily(config, FindNearestFamily(config));
  DecoderSpec spec = architecture->describe(config);
  spec.quantization = QuantizationConfig::Read(config, spec.names.head);
  if (const std::string& scheme = spec.quantization.cache_scheme(); !scheme.empty()) {
    spec.warnings.push_back(fmt::format(
        "config.json recommends {} for cached keys and values; they have the type that a session "
        "asks for instead (kv_type: bf16 unless it is set, and int8, k8v4 or int4 take less)",
        scheme));
  }
  CheckUnreadKeys(
      architecture->text_config.empty() ? config : config.Object(architecture->text_config).value(),
      spec);
  return spec;
}

}  // namespace godwit
