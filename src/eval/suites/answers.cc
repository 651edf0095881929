#include "eval/suites/answers.h"

#include <algorithm>
#include <cctype>

#include "base/split_text.h"

namespace godwit::eval {
namespace {

constexpr std::string_view kDigits = "0123456789";

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// As RULER looks at an answer.
std::string Plain(std::string_view answer) {
  std::string text = Lower(answer);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = '\n';
  }
  return std::string(Stripped(text));
}

int64_t Found(std::string_view answer, const std::vector<std::string>& expected) {
  const std::string text = Plain(answer);
  return std::ranges::count_if(
      expected, [&](const std::string& one) { return text.find(Lower(one)) != std::string::npos; });
}

}  // namespace

std::string_view FirstDigits(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_of(kDigits), text.size()));
  return text.substr(0, text.find_first_not_of(kDigits));
}

std::string_view LastDigits(std::string_view text) {
  text = text.substr(0, text.find_last_of(kDigits) + 1);
  return text.substr(text.find_last_not_of(kDigits) + 1);
}

bool HasWord(std::string_view answer, std::string_view word) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r:\"'.,?!{}";
  while (!answer.empty()) {
    const std::string_view next = answer.substr(0, answer.find_first_of(kBlanks));
    if (next == word) return true;
    answer.remove_prefix(std::min(next.size() + 1, answer.size()));
  }
  return false;
}

double ShareFound(std::string_view answer, const std::vector<std::string>& expected) {
  return static_cast<double>(Found(answer, expected)) / static_cast<double>(expected.size());
}

double AnyFound(std::string_view answer, const std::vector<std::string>& expected) {
  return Found(answer, expected) > 0 ? 1 : 0;
}

}  // namespace godwit::eval
