#include "quant/scheme.h"

#include "base/error.h"
#include "base/quote.h"

namespace godwit::quant {

const Scheme& FindScheme(std::string_view name) {
  for (const Scheme& scheme : kSchemes) {
    if (scheme.name == name) return scheme;
  }
  Throw(ErrorKind::kInput, "expected {}, found {}", SchemeNames(), Quote(name));
}

std::string SchemeNames() {
  std::string names;
  for (const Scheme& scheme : kSchemes) {
    if (!names.empty()) names += &scheme == std::end(kSchemes) - 1 ? " or " : ", ";
    names += scheme.name;
  }
  return names;
}

}  // namespace godwit::quant
