#include "cli/options/arguments.h"

#include "base/error.h"

namespace godwit::cli {
namespace {

// Not "-n5", "-n-1" or "-5".
bool IsShortFlagOfSeveralLetters(std::string_view argument) {
  constexpr std::string_view kNumberBegins = "0123456789+-.";
  return argument.size() > 2 && argument[0] == '-' &&
         kNumberBegins.find(argument[1]) == std::string_view::npos &&
         kNumberBegins.find(argument[2]) == std::string_view::npos;
}

}  // namespace

std::vector<std::string> RewriteArguments(
    std::span<const std::string> arguments,
    const std::map<std::string, std::string, std::less<>>& long_names,
    const std::function<bool(std::string_view flag)>& takes_value,
    const std::function<void(const std::string& flag)>& refuse) {
  std::vector<std::string> rewritten;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      rewritten.insert(rewritten.end(), arguments.begin() + static_cast<ptrdiff_t>(i),
                       arguments.end());
      break;
    }
    const size_t equals = argument.starts_with("--") ? argument.find('=') : std::string::npos;
    if (equals != std::string::npos && takes_value(argument.substr(0, equals))) {
      rewritten.push_back(argument.substr(0, equals));
      rewritten.push_back(argument.substr(equals + 1));
      continue;
    }
    const auto known = long_names.find(argument);
    if (known == long_names.end() && IsShortFlagOfSeveralLetters(argument)) refuse(argument);
    rewritten.push_back(known == long_names.end() ? argument : known->second);
    if (!takes_value(rewritten.back())) continue;
    if (i + 1 == arguments.size()) Throw(ErrorKind::kInput, "{} needs a value", argument);
    rewritten.push_back(arguments[++i]);
  }
  return rewritten;
}

}  // namespace godwit::cli
