#include "checkpoint/tensor_differences.h"

#include <algorithm>
#include <set>
#include <vector>

#include "base/name_list.h"
#include "base/quote.h"
#include "checkpoint/weight_facts.h"
#include "model/model_tensors.h"

namespace godwit {
namespace {

using Patterns = std::set<std::string>;

// Tensor names of a layer of each kind and one expert, since a config.json may ask for millions.
Patterns Wanted(const DecoderSpec& spec) {
  Patterns patterns;
  for (const LayersOfKind& layers : LayersByKind(spec)) {
    for (const WantedTensor& tensor : WantedTensors(OneLayer(spec, layers.first, /*experts=*/1))) {
      patterns.insert(WithoutNumbers(tensor.name));
    }
  }
  return patterns;
}

bool IsHarmless(const DecoderSpec& spec, const std::string& name) {
  return std::ranges::any_of(spec.names.harmless,
                             [&](const std::string& end) { return name.ends_with(end); });
}

// "a, b and 7 more": names in `these` that are not in `those`. Empty: none.
std::string Only(const Patterns& these, const Patterns& those) {
  constexpr int64_t kShown = 4;
  std::vector<std::string> names;
  std::ranges::set_difference(these, those, std::back_inserter(names));
  for (std::string& name : names) name = QuoteUnlessPlain(name);
  return FirstNames(names, kShown);
}

}  // namespace

std::string TensorDifferences(const DecoderSpec& spec, std::span<const std::string> names) {
  const Patterns wanted = Wanted(spec);
  Patterns found;
  for (const std::string& name : names) {
    if (!IsHarmless(spec, name)) found.insert(WithoutNumbers(name));
  }
  const std::string missing = Only(wanted, found), others = Only(found, wanted);
  if (missing.empty() && others.empty()) return "its tensor names are those of that family";
  return fmt::format("its tensors differ: it {}{}{}{}{}", missing.empty() ? "" : "lacks ", missing,
                     missing.empty() || others.empty() ? "" : " and ",
                     others.empty() ? "" : "has others: ", others);
}

}  // namespace godwit
