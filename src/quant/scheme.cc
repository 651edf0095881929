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

std::string SchemeNames() { return NameList(kSchemes, &Scheme::name, " or "); }

}  // namespace godwit::quant
