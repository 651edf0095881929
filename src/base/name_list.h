// The names of what there is to choose from, for help and for messages.
#pragma once

#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace godwit {

// "a, b, c", or with last = " or ": "a, b or c". name(item): its name, or a pointer to that member.
template <typename Items, typename Name>
std::string NameList(const Items& items, const Name& name, std::string_view last = ", ") {
  std::string names;
  for (auto item = std::begin(items); item != std::end(items); ++item) {
    if (!names.empty()) names += std::next(item) == std::end(items) ? last : ", ";
    names += std::invoke(name, *item);
  }
  return names;
}

// Each by itself.
template <typename Items, typename Name>
std::vector<std::string> Names(const Items& items, const Name& name) {
  std::vector<std::string> names;
  for (const auto& item : items) names.emplace_back(std::invoke(name, item));
  return names;
}

}  // namespace godwit
