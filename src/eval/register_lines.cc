#include "eval/register_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/rng.h"

namespace godwit::eval {

std::string RegisterLine(int64_t line, int64_t value) {
  return fmt::format("The REGISTER_CONTENT in line {} is{}\n", line, RegisterAnswer(value));
}

std::string RegisterQuery(int64_t line) {
  return fmt::format("Query: The REGISTER_CONTENT in line {} is", line);
}

std::string RegisterAnswer(int64_t value) { return fmt::format(" <{}>", value); }

int64_t RegisterValue(uint64_t seed, int64_t sample, int64_t line) {
  constexpr double kMost = 50000;
  return 1 + static_cast<int64_t>(kMost *
                                  Uniform(seed, static_cast<uint64_t>(sample), line, /*draw=*/0));
}

bool AnswersRegister(std::string_view answer, int64_t value) {
  constexpr std::string_view kDigits = "0123456789";
  const size_t begin = std::min(answer.find_first_of(kDigits), answer.size());
  const size_t end = std::min(answer.find_first_not_of(kDigits, begin), answer.size());
  std::string_view number = answer.substr(begin, end - begin);
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number == fmt::format("{}", value);
}

}  // namespace godwit::eval
