#include "eval/suites/answers.h"

#include <algorithm>
#include <string>

#include "base/ascii.h"

namespace godwit::eval {
namespace {

constexpr std::string_view kDigits = "0123456789";

// The number of expected answers that the answer contains.
int64_t CountFound(std::string_view answer, const std::vector<std::string>& expected) {
  std::string text = Lower(answer);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = '\n';
  }
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

bool IsOnlyLabel(std::string_view answer, std::string_view target, std::string_view question,
                 std::span<const std::string_view> labels) {
  std::string said = Lower(answer);
  for (const char* end : {".", "<context>", "<example>"}) said = said.substr(0, said.find(end));
  const std::string asked = Lower(question);
  bool is_said = false;
  for (const std::string_view one : labels) {
    const std::string label = Lower(one);
    if (asked.find(label) != std::string::npos || said.find(label) == std::string::npos) continue;
    if (label != Lower(target)) return false;
    is_said = true;
  }
  return is_said;
}

double ShareFound(std::string_view answer, const std::vector<std::string>& expected) {
  return static_cast<double>(CountFound(answer, expected)) / static_cast<double>(expected.size());
}

double AnyFound(std::string_view answer, const std::vector<std::string>& expected) {
  return CountFound(answer, expected) > 0 ? 1 : 0;
}

}  // namespace godwit::eval
