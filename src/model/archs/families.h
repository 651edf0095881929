// What the families' files state: the spec of a config.json. all.cc tells which model_type is
// whose.
#pragma once

#include <string_view>

#include "model/hf_fields.h"
#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

DecoderSpec DescribeBloom(const HfConfig& config);
DecoderSpec DescribeCohere(const HfConfig& config);
DecoderSpec DescribeCohere2(const HfConfig& config);
DecoderSpec DescribeDeepseekV2(const HfConfig& config);
DecoderSpec DescribeDeepseekV3(const HfConfig& config);
DecoderSpec DescribeFalcon(const HfConfig& config);
DecoderSpec DescribeGemma(const HfConfig& config);
DecoderSpec DescribeGemma2(const HfConfig& config);
DecoderSpec DescribeGemma3(const HfConfig& config);
DecoderSpec DescribeGemma3Text(const HfConfig& config);
DecoderSpec DescribeRefinedWeb(const HfConfig& config);
DecoderSpec DescribeRefinedWebModel(const HfConfig& config);
DecoderSpec DescribeGlm(const HfConfig& config);
DecoderSpec DescribeGlm4(const HfConfig& config);
DecoderSpec DescribeGpt2(const HfConfig& config);
DecoderSpec DescribeGptNeox(const HfConfig& config);
DecoderSpec DescribeGptOss(const HfConfig& config);
DecoderSpec DescribeGranite(const HfConfig& config);
DecoderSpec DescribeGraniteMoe(const HfConfig& config);
DecoderSpec DescribeGraniteMoeShared(const HfConfig& config);
DecoderSpec DescribeInternLm2(const HfConfig& config);
DecoderSpec DescribeLlama(const HfConfig& config);
DecoderSpec DescribeLlama4(const HfConfig& config);
DecoderSpec DescribeLlama4Text(const HfConfig& config);
DecoderSpec DescribeMinistral3(const HfConfig& config);
DecoderSpec DescribeMistral(const HfConfig& config);
DecoderSpec DescribeMistral3(const HfConfig& config);
DecoderSpec DescribeMixtral(const HfConfig& config);
DecoderSpec DescribeMpt(const HfConfig& config);
DecoderSpec DescribeOlmo(const HfConfig& config);
DecoderSpec DescribeOlmo2(const HfConfig& config);
DecoderSpec DescribeOlmo3(const HfConfig& config);
DecoderSpec DescribeOpt(const HfConfig& config);
DecoderSpec DescribePhi3(const HfConfig& config);
DecoderSpec DescribeQwen2(const HfConfig& config);
DecoderSpec DescribeQwen3(const HfConfig& config);
DecoderSpec DescribeQwen3Moe(const HfConfig& config);
DecoderSpec DescribeSmolLm3(const HfConfig& config);
DecoderSpec DescribeStableLm(const HfConfig& config);
DecoderSpec DescribeStarcoder2(const HfConfig& config);

// For families that are variations of Llama: without its choice of biases. default_theta:
// rope_theta unless told.
DecoderSpec DescribeLlamaLike(const HfConfig& config, double default_theta = 10000);
// The same without positions, for those that rotate otherwise or spell their fields otherwise.
DecoderSpec DescribeLlamaShape(const HfConfig& config, const CommonKeys& keys = {});

// Names of a model in which some layers have Llama's MLP, as these are, and others experts: those
// of its experts and their router.
void NameExperts(ModuleNames& names);

// Of a model that sees: what its text_config describes, under the names that it has in the whole
// one. vision: the module that sees.
DecoderSpec BesideVision(const HfConfig& config, DecoderSpec text,
                         std::string_view vision = "vision_tower");

}  // namespace godwit
