#include "hub/hub_name.h"

#include <algorithm>
#include <cctype>

#include "base/quote.h"

namespace godwit::hub {
namespace {

bool IsPart(std::string_view part) {
  return !part.empty() && part.size() <= 96 && part.front() != '.' &&
         std::all_of(part.begin(), part.end(), [](unsigned char c) {
           return c < 0x80 && (std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.');
         });
}

}  // namespace

HubName SplitHubName(const std::string& name) {
  const size_t colon = name.rfind(':');
  if (colon == name.npos || name.find('/', colon) != name.npos) return {name, ""};
  return {name.substr(0, colon), name.substr(colon + 1)};
}

bool IsHubName(std::string_view repository) {
  const size_t slash = repository.find('/');
  return slash != repository.npos && IsPart(repository.substr(0, slash)) &&
         IsPart(repository.substr(slash + 1));
}

std::string Spelling(const std::string& repository, const std::string& quant) {
  return QuoteUnlessPlain(quant.empty() ? repository : repository + ":" + quant);
}

}  // namespace godwit::hub
