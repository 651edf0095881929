#include "console/options/int_list.h"

#include "base/error.h"
#include "base/quote.h"
#include "console/options/parse_value.h"

namespace godwit::console {
namespace {

constexpr size_t kMostNumbers = 1000;

void Append(std::string_view part, int64_t min, int64_t max, std::vector<int64_t>& numbers) {
  const size_t dash = part.find('-');
  // A minus sign in front is no range.
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
    if (numbers.size() > kMostNumbers) {
      Throw(ErrorKind::kInput, "{} are more than {} numbers", Quote(part), kMostNumbers);
    }
    if (number > max / factor - step) break;  // the next one would overflow
  }
}

}  // namespace

std::vector<int64_t> ParseIntList(std::string_view text, int64_t min, int64_t max) {
  std::vector<int64_t> numbers;
  for (const std::string_view part : SplitAtCommas(text)) Append(part, min, max, numbers);
  return numbers;
}

}  // namespace godwit::console
