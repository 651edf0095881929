#include "weights/gguf_families.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/quote.h"

namespace godwit {

std::vector<const GgufFamily*> AllGgufFamilies() {
  std::vector<const GgufFamily*> all;
  for (const std::span<const GgufFamily> families :
       {LlamaGgufFamilies(), KinGgufFamilies(), GemmaGgufFamilies(), GptGgufFamilies()}) {
    for (const GgufFamily& family : families) all.push_back(&family);
  }
  return all;
}

const GgufFamily& FindGgufFamily(const GgufMetadata& metadata, bool second_attention_norm) {
  constexpr std::string_view kKey = "general.architecture";
  const std::string architecture = metadata.String(kKey);
  std::vector<std::string> names;
  for (const GgufFamily* family : AllGgufFamilies()) {
    if (family->architecture == architecture &&
        (second_attention_norm || !family->second_attention_norm)) {
      return *family;
    }
    names.emplace_back(family->architecture);
  }
  names.erase(std::unique(names.begin(), names.end()), names.end());
  metadata.Refuse(kKey, fmt::format("{}", fmt::join(names, ", ")), Quote(architecture),
                  ErrorKind::kUnsupported);
}

}  // namespace godwit
