// The functions of the families' files: the spec of a config.json. all.cc maps model_type to them.
#pragma once

#include <string_view>

#include "model/hf_fields.h"
#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

DecoderSpec DescribeApertus(const HfConfig& config);
DecoderSpec DescribeBamba(const HfConfig& config);
DecoderSpec DescribeBloom(const HfConfig& config);
DecoderSpec DescribeCohere(const HfConfig& config);
DecoderSpec DescribeCohere2(const HfConfig& config);
DecoderSpec DescribeDeepseekV2(const HfConfig& config);
DecoderSpec DescribeDeepseekV3(const HfConfig& config);
DecoderSpec DescribeDeepseekV32(const HfConfig& config);
DecoderSpec DescribeErnie45(const HfConfig& config);
DecoderSpec DescribeErnie45Moe(const HfConfig& config);
DecoderSpec DescribeExaone4(const HfConfig& config);
DecoderSpec DescribeFalcon(const HfConfig& config);
DecoderSpec DescribeFalconH1(const HfConfig& config);
DecoderSpec DescribeGemma(const HfConfig& config);
DecoderSpec DescribeGemma2(const HfConfig& config);
DecoderSpec DescribeGemma3(const HfConfig& config);
DecoderSpec DescribeGemma3Text(const HfConfig& config);
DecoderSpec DescribeGemma3n(const HfConfig& config);
DecoderSpec DescribeGemma3nText(const HfConfig& config);
DecoderSpec DescribeGemma4(const HfConfig& config);
DecoderSpec DescribeGemma4Text(const HfConfig& config);
DecoderSpec DescribeRefinedWeb(const HfConfig& config);
DecoderSpec DescribeRefinedWebModel(const HfConfig& config);
DecoderSpec DescribeGlm(const HfConfig& config);
DecoderSpec DescribeGlm4(const HfConfig& config);
DecoderSpec DescribeGlm4Moe(const HfConfig& config);
DecoderSpec DescribeGlmMoeDsa(const HfConfig& config);
DecoderSpec DescribeGpt2(const HfConfig& config);
DecoderSpec DescribeGptNeox(const HfConfig& config);
DecoderSpec DescribeGptOss(const HfConfig& config);
DecoderSpec DescribeGranite(const HfConfig& config);
DecoderSpec DescribeGraniteMoe(const HfConfig& config);
DecoderSpec DescribeGraniteMoeHybrid(const HfConfig& config);
DecoderSpec DescribeGraniteMoeShared(const HfConfig& config);
DecoderSpec DescribeHunyuanDense(const HfConfig& config);
DecoderSpec DescribeHunyuanMoe(const HfConfig& config);
DecoderSpec DescribeInternLm2(const HfConfig& config);
DecoderSpec DescribeKimiLinear(const HfConfig& config);
DecoderSpec DescribeLfm2(const HfConfig& config);
DecoderSpec DescribeLfm2Moe(const HfConfig& config);
DecoderSpec DescribeLlama(const HfConfig& config);
DecoderSpec DescribeLlama4(const HfConfig& config);
DecoderSpec DescribeLlama4Text(const HfConfig& config);
DecoderSpec DescribeMiniMaxM2(const HfConfig& config);
DecoderSpec DescribeMinistral3(const HfConfig& config);
DecoderSpec DescribeMistral(const HfConfig& config);
DecoderSpec DescribeMistral3(const HfConfig& config);
DecoderSpec DescribeMistral4(const HfConfig& config);
DecoderSpec DescribeMixtral(const HfConfig& config);
DecoderSpec DescribeMpt(const HfConfig& config);
DecoderSpec DescribeNemotronH(const HfConfig& config);
DecoderSpec DescribeOlmo(const HfConfig& config);
DecoderSpec DescribeOlmo2(const HfConfig& config);
DecoderSpec DescribeOlmo3(const HfConfig& config);
DecoderSpec DescribeOlmoHybrid(const HfConfig& config);
DecoderSpec DescribeOpt(const HfConfig& config);
DecoderSpec DescribePhi3(const HfConfig& config);
DecoderSpec DescribePhiMoe(const HfConfig& config);
DecoderSpec DescribeQwen2(const HfConfig& config);
DecoderSpec DescribeQwen3(const HfConfig& config);
DecoderSpec DescribeQwen3Moe(const HfConfig& config);
DecoderSpec DescribeSeedOss(const HfConfig& config);
DecoderSpec DescribeQwen35(const HfConfig& config);
DecoderSpec DescribeQwen35Moe(const HfConfig& config);
DecoderSpec DescribeQwen35MoeText(const HfConfig& config);
DecoderSpec DescribeQwen35Text(const HfConfig& config);
DecoderSpec DescribeQwen3Next(const HfConfig& config);
DecoderSpec DescribeSmolLm3(const HfConfig& config);
DecoderSpec DescribeStableLm(const HfConfig& config);
DecoderSpec DescribeStarcoder2(const HfConfig& config);

// A spec for families that are variations of Llama, without its choice of biases. default_theta:
// rope_theta unless told.
DecoderSpec DescribeLlamaLike(const HfConfig& config, double default_theta = 10000);
// A spec as DescribeLlamaLike without positions, for families that rotate differently or have other
// names of fields.
DecoderSpec DescribeLlamaShape(const HfConfig& config, const CommonKeys& keys = {});

// Adds the names of experts and their router, in a model in which some layers have Llama's MLP,
// with the names here, and others experts.
void NameExperts(ModuleNames& names);

// Reads num_nextn_predict_layers (absent: 0). DeepSeek's layer that predicts is stored behind the
// others. The first of several is described.
void ReadDeepseekPrediction(const HfConfig& config, DecoderSpec& spec);

// Reads Llama 4's temperature of the queries of all layers from rope_parameters.
void ReadQueryTemperature(const HfConfig& fields, DecoderSpec& spec);

// The spec of the text model in a model that also sees pictures, by its text_config, with names as
// in the whole model. vision: the module that sees.
DecoderSpec BesideVision(const HfConfig& config, DecoderSpec text,
                         std::string_view vision = "vision_tower");

}  // namespace godwit
