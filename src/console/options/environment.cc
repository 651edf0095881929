#include "console/options/environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "base/nearest.h"
#include "base/quote.h"

namespace godwit::console {
namespace {

constexpr std::string_view kPrefix = "GODWIT_";

}  // namespace

std::string VariableName(std::string_view long_name, std::string_view verb) {
  std::string name(kPrefix);
  for (const char c : fmt::format("{}{}", verb, long_name.substr(verb.empty() ? 2 : 1))) {
    name +=
        c == '-' || c == ' ' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

std::vector<std::string> GivenVariables() {
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const size_t end = text.find('=');
    if (!text.starts_with(kPrefix) || end == text.npos || end + 1 == text.size()) continue;
    names.emplace_back(text.substr(0, end));
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> DescribeUnknownVariables(std::span<const std::string> given,
                                                  std::span<const CommandPage> pages) {
  std::vector<std::string> known;  // without the common prefix, which makes any two look alike
  for (const CommandPage& page : pages) {
    for (const FlagPage& flag : page.flags) {
      for (const std::string& name : flag.names) {
        if (!name.starts_with("--")) continue;
        known.push_back(
            VariableName(name, flag.is_verbs_own ? page.name : "").substr(kPrefix.size()));
      }
    }
  }
  std::vector<std::string> sentences;
  for (const std::string& variable : given) {
    const std::string name = variable.substr(kPrefix.size());
    if (std::ranges::find(known, name) != known.end()) continue;
    const auto nearest = Nearest(name, known);
    sentences.push_back(
        fmt::format("the environment variable {} is ignored: there is no such flag{}",
                    QuoteUnlessPlain(variable),
                    nearest ? fmt::format("; did you mean {}{}?", kPrefix, *nearest) : ""));
  }
  return sentences;
}

}  // namespace godwit::console
