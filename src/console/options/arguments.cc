#include "console/options/arguments.h"

#include "base/error.h"

namespace godwit::console {
namespace {

// The number of characters of the name in "-n5", "-n-1" or "-ub64"; npos: the whole argument.
size_t EndOfShortName(std::string_view argument) {
  if (argument.size() < 3 || argument[0] != '-' || argument[1] == '-') return argument.npos;
  return argument.find_first_of("0123456789+-.", 2);
}

std::string_view NameOf(std::string_view argument) {
  return argument.substr(0, argument.find('='));
}

bool HasValue(FlagKind kind) {
  return kind == FlagKind::kWithValue || kind == FlagKind::kWithValues;
}

bool LooksLikeFlag(std::string_view argument) {
  return argument.starts_with('-') && argument != "-";
}

}  // namespace

std::vector<GivenFlag> SplitArguments(
    std::span<const std::string> arguments,
    const std::function<FlagKind(std::string_view name)>& kind,
    const std::function<void(const std::string& argument)>& other) {
  std::vector<GivenFlag> flags;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    std::string_view name = NameOf(argument);
    std::optional<std::string> value;
    if (name.size() < argument.size()) value = argument.substr(name.size() + 1);
    bool goes_on = false;  // further arguments may be further values
    if (kind(name) == FlagKind::kUnknown) {
      const size_t end = EndOfShortName(argument);
      name = std::string_view(argument).substr(0, end);
      if (end == argument.npos || !HasValue(kind(name))) {
        other(argument);
        continue;
      }
      value = argument.substr(end);
    }
    if (HasValue(kind(name)) && !value) {
      goes_on = kind(name) == FlagKind::kWithValues;
      if (++i == arguments.size()) Throw(ErrorKind::kInput, "{} needs a value", name);
      value = arguments[i];
      const std::string_view next = NameOf(*value);
      if (kind(next) != FlagKind::kUnknown) {
        Throw(ErrorKind::kInput,
              "{0} needs a value, found the flag {1} (write {0}={1} if that is the value)", name,
              next);
      }
    }
    flags.push_back({.name = std::string(name), .value = std::move(value)});
    while (goes_on && i + 1 < arguments.size() && !LooksLikeFlag(arguments[i + 1])) {
      flags.push_back({.name = std::string(name), .value = arguments[++i]});
    }
  }
  return flags;
}

}  // namespace godwit::console
