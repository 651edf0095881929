// The names of what there is to choose from, for help and for messages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <span>
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

// The first of some names: "a, b and c", or where there are more than `shown` "a, b, c and 7 more".
inline std::string FirstNames(const std::vector<std::string>& names, int64_t shown) {
  const auto more = std::max<int64_t>(0, std::ssize(names) - shown);
  const std::span<const std::string> first(names.data(), names.size() - static_cast<size_t>(more));
  if (more == 0) return NameList(first, std::identity(), " and ");
  return NameList(first, std::identity()) + " and " + std::to_string(more) + " more";
}

// Each by itself.
template <typename Items, typename Name>
std::vector<std::string> Names(const Items& items, const Name& name) {
  std::vector<std::string> names;
  for (const auto& item : items) names.emplace_back(std::invoke(name, item));
  return names;
}

}  // namespace godwit
