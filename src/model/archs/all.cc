#include "model/archs/all.h"

#include <array>
#include <string>

#include "base/error.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "model/archs/families.h"
#include "model/unread_keys.h"

namespace godwit {
namespace {

constexpr std::array kArchitectures = {
    Architecture{"llama", "Llama 1, 2, 3, 3.1, 3.2 and models of their shape", DescribeLlama},
    Architecture{"mistral", "Mistral (sliding window)", DescribeMistral},
    Architecture{"qwen2", "Qwen1.5, Qwen2, Qwen2.5", DescribeQwen2},
    Architecture{"qwen3", "Qwen3 (dense)", DescribeQwen3},
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
    Architecture{"gemma", "Gemma 1", DescribeGemma},
    Architecture{"gemma3_text", "Gemma 3 270M and 1B (windows)", DescribeGemma3Text},
    Architecture{"gemma3", "Gemma 3 4B, 12B and 27B, which read no pictures here", DescribeGemma3,
                 /*text_config=*/"text_config"},
};

}  // namespace

std::span<const Architecture> AllArchitectures() { return kArchitectures; }

DecoderSpec DescribeModel(const HfConfig& config) {
  const std::string model_type = config.model_type();
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.model_type == model_type) {
      DecoderSpec spec = architecture.describe(config);
      spec.quantization = QuantizationConfig::Read(config, spec.names.head);
      CheckUnreadKeys(architecture.text_config.empty()
                          ? config
                          : config.Object(architecture.text_config).value(),
                      spec);
      return spec;
    }
  }
  Throw(ErrorKind::kUnsupported, "model_type {} is not supported; there are: {}", Quote(model_type),
        NameList(kArchitectures, &Architecture::model_type));
}

}  // namespace godwit
