#include "quant/scheme.h"

#include "base/error.h"
#include "base/name_list.h"
#include "base/quote.h"

namespace godwit::quant {

const Scheme& FindScheme(std::string_view name) {
  for (const Scheme& scheme : kSchemes) {
    if (scheme.name == name) return scheme;
  }
  Throw(ErrorKind::kInput, "expected {}, found {}", SchemeNames(), Quote(name));
}

const Scheme& Int8Counterpart(const Scheme& scheme) {
  static constexpr Scheme kWeightsAlone = {
      "w8a16", "per-channel weights, activations in float", 1, InputScale::kPerToken, false, 0, 0,
      true};
  return scheme.weights_alone ? kWeightsAlone : FindScheme("w8a8");
}

std::string SchemeNames() { return NameList(kSchemes, &Scheme::name, " or "); }

}  // namespace godwit::quant
