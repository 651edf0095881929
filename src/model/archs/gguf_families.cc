#include "model/archs/gguf_families.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/quote.h"

namespace godwit {

namespace {

constexpr std::array kGgufFamilies = {
    &kLlamaGguf,    &kQwen2Gguf,         &kQwen3Gguf,        &kQwen3MoeGguf,   &kInternLm2Gguf,
    &kGlm4Gguf,     &kPhi3Gguf,          &kGraniteGguf,      &kGraniteMoeGguf, &kOlmoGguf,
    &kOlmo2Gguf,    &kStableLmGguf,      &kStarcoder2Gguf,   &kCohereGguf,     &kCohere2Gguf,
    &kGemmaGguf,    &kGemma2Gguf,        &kGemma3Gguf,       &kGptNeoxGguf,    &kFalcon40Gguf,
    &kFalconGguf,   &kMptGguf,           &kBloomGguf,        &kGptOssGguf,     &kDeepseekGguf,
    &kLlama4Gguf,   &kGlm4MoeGguf,       &kSeedOssGguf,      &kExaone4Gguf,    &kErnieGguf,
    &kErnieMoeGguf, &kMiniMaxGguf,       &kHunyuanDenseGguf, &kHunyuanMoeGguf, &kLfm2Gguf,
    &kLfm2MoeGguf,  &kApertusGguf,       &kQwen3NextGguf,    &kQwen35Gguf,     &kQwen35MoeGguf,
    &kBambaGguf,    &kGraniteHybridGguf, &kFalconH1Gguf,     &kNemotronHGguf,  &kNemotronHMoeGguf,
    &kGemma3nGguf,  &kGemma4Gguf,        &kMistral4Gguf};

}  // namespace

std::span<const GgufFamily* const> AllGgufFamilies() { return kGgufFamilies; }

const GgufFamily& FindGgufFamily(const GgufMetadata& metadata, bool second_attention_norm) {
  constexpr std::string_view kKey = "general.architecture";
  const std::string architecture = metadata.String(kKey);
  std::vector<std::string> names;
  for (const GgufFamily* const family : AllGgufFamilies()) {
    if (family->architecture == architecture &&
        (second_attention_norm || !family->second_attention_norm) &&
        (family->fits == nullptr || family->fits(metadata))) {
      return *family;
    }
    names.emplace_back(family->architecture);
  }
  names.erase(std::unique(names.begin(), names.end()), names.end());
  metadata.Refuse(kKey, fmt::format("{}", fmt::join(names, ", ")), Quote(architecture),
                  ErrorKind::kUnsupported);
}

}  // namespace godwit
