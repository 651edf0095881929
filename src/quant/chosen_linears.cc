#include "quant/chosen_linears.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/quote.h"
#include "quant/linear_layers.h"
#include "quant/matrix_part.h"

namespace godwit::quant {
namespace {

bool IsNumber(const std::string& text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

ChosenLinears ChooseLinears(const ModelTensors& tensors, const std::string& which) {
  ChosenLinears chosen;
  const bool number = IsNumber(which);
  std::string first;  // the name of the first layer
  for (size_t i = 0; i < tensors.layers.size(); ++i) {
    std::set<std::string, std::less<>> names;
    bool any = false;
    ForEachLinear(tensors.layers[i], [&](const LinearTensors& linear) {
      names.insert(ModuleName(linear));
      if (first.empty()) first = ModuleName(linear);
      const bool wanted = number ? which == std::to_string(i)
                                 : std::ranges::any_of(PartsOf(linear), [&](const auto& part) {
                                     return MatchesName(which, ModuleName(part));
                                   });
      if (!wanted) return;
      chosen.linears.push_back(&linear);
      any = true;
    });
    if (!any) continue;
    chosen.layers = static_cast<int64_t>(i) + 1;
    chosen.neighbours.merge(names);
  }
  if (chosen.linears.empty()) {
    Throw(
        ErrorKind::kInput,
        "no linear layer is called {}: expected the number of a decoder layer, 0 to {}, or a name "
        "such as {}",
        Quote(which), tensors.layers.size() - 1, first);
  }
  return chosen;
}

std::vector<SmoothGroup> GroupsOf(const ChosenLinears& chosen, std::vector<SmoothGroup> groups) {
  std::erase_if(groups, [&](const SmoothGroup& group) {
    return std::ranges::none_of(group.linears, [&](const LinearTensors* linear) {
      return chosen.neighbours.contains(ModuleName(*linear));
    });
  });
  return groups;
}

}  // namespace godwit::quant
