#include "console/options/parse_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "base/quote.h"
#include "base/split_text.h"

namespace godwit::console {
namespace {

template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Calls each(part) for the parts between commas.
template <typename F>
void ForEachPart(std::string_view text, F each) {
  for (const std::string_view part : SplitAtCommas(text)) each(Stripped(part));
}

constexpr size_t kMaxNumbers = 1000;

void AppendRange(std::string_view part, int64_t min, int64_t max, std::vector<int64_t>& numbers) {
  const size_t dash = part.find('-');
  // A minus sign in front makes no range.
  if (dash == std::string_view::npos || dash == 0) {
    numbers.push_back(ParseInt(part, min, max));
    return;
  }
  const int64_t first = ParseInt(part.substr(0, dash), min, max);
  std::string_view rest = part.substr(dash + 1);
  const size_t sign = rest.find_first_of("+*");
  const int64_t last = ParseInt(rest.substr(0, sign), first, max);
  int64_t step = 1, factor = 1;
  if (sign != std::string_view::npos) {
    const std::string_view by = rest.substr(sign + 1);
    if (rest[sign] == '+') {
      step = ParseInt(by, 1, max);
    } else {
      step = 0;
      factor = ParseInt(by, 2, max);
      ParseInt(part.substr(0, dash), 1, max);  // 0 does not grow
    }
  }
  for (int64_t number = first; number <= last; number = number * factor + step) {
    numbers.push_back(number);
    if (numbers.size() > kMaxNumbers) {
      Throw(ErrorKind::kInput, "{} has more than {} numbers", Quote(part), kMaxNumbers);
    }
    if (number > max / factor - step) break;  // the next one would overflow
  }
}

}  // namespace

std::vector<std::string_view> SplitAtCommas(std::string_view text) { return SplitAt(',', text); }

int64_t ParseInt(std::string_view text, int64_t min, int64_t max) {
  const auto value = ParseNumber<int64_t>(text);
  if (!value || *value < min || *value > max) {
    const std::string range = max == INT64_MAX ? fmt::format("of at least {}", min)
                                               : fmt::format("from {} to {}", min, max);
    Throw(ErrorKind::kInput, "expected a whole number {}, found {}", range, Quote(text));
  }
  return *value;
}

float ParseFloat(std::string_view text) {
  const auto value = ParseNumber<float>(text);
  if (!value) Throw(ErrorKind::kInput, "expected a number, found {}", Quote(text));
  return *value;
}

int64_t ParseBytes(std::string_view text) {
  constexpr std::string_view kUnits = "kKmMgGtT";
  const size_t end = std::min(text.find_first_of(kUnits), text.size());
  double factor = 1;
  if (end < text.size()) {
    const std::string_view rest = text.substr(end + 1);
    const bool is_unit = rest.empty() || rest == "i" || rest == "iB";
    factor = is_unit ? std::exp2(10 * static_cast<double>(kUnits.find(text[end]) / 2 + 1)) : 0;
  }
  const double bytes = ParseNumber<double>(text.substr(0, end)).value_or(0) * factor;
  constexpr double kMost = 1LL << 60;
  if (!(bytes >= 1 && bytes <= kMost)) {
    Throw(ErrorKind::kInput, "expected an amount of memory such as 8G or 512M, found {}",
          Quote(text));
  }
  return static_cast<int64_t>(bytes);
}

bool ParseBool(std::string_view text) {
  for (const std::string_view yes : {"1", "true", "yes", "on"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"0", "false", "no", "off"}) {
    if (text == no) return false;
  }
  Throw(ErrorKind::kInput, "expected 1 or 0, found {}", Quote(text));
}

std::vector<int32_t> ParseTokens(std::string_view text) {
  std::string_view list = Stripped(text);
  if (list.starts_with('[') && list.ends_with(']'))
    list = Stripped(list.substr(1, list.size() - 2));
  std::vector<int32_t> tokens;
  if (list.empty()) return tokens;
  ForEachPart(list, [&](std::string_view part) {
    const auto id = ParseNumber<int32_t>(part);
    if (!id) {
      Throw(ErrorKind::kInput, "expected token ids such as 1,2,3, found {}", Quote(part));
    }
    tokens.push_back(*id);
  });
  return tokens;
}

void ParseLogitBias(std::string_view text, std::map<int32_t, float>& biases) {
  ForEachPart(text, [&](std::string_view part) {
    const size_t sign = part.find_first_of("+-");
    const auto token = ParseNumber<int32_t>(part.substr(0, sign));
    const auto bias =
        sign == std::string_view::npos ? std::nullopt : ParseNumber<float>(part.substr(sign));
    if (!token || !bias) {
      Throw(ErrorKind::kInput, "expected a token id and a signed number such as 15043+1, found {}",
            Quote(part));
    }
    const auto [before, is_new] = biases.emplace(*token, *bias);
    if (!is_new && before->second != *bias) {
      Throw(ErrorKind::kInput, "token {} has two biases, {} and {}: expected one", *token,
            before->second, *bias);
    }
  });
}

std::vector<int64_t> ParseIntList(std::string_view text, int64_t min, int64_t max) {
  std::vector<int64_t> numbers;
  for (const std::string_view part : SplitAtCommas(text)) AppendRange(part, min, max, numbers);
  return numbers;
}

}  // namespace godwit::console
