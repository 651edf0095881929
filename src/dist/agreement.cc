#include "dist/agreement.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace godwit {

ErrorData ReportedByRankZero(const Communicator& ranks) {
  return {.code = ranks.rank() == 0 ? ErrorCode::kOther : ErrorCode::kOtherRank};
}

void Agree(Communicator& ranks, std::span<const Fact> facts, const CancelToken* cancel) {
  constexpr size_t kMaxValue = 256;
  std::vector<char> mine(facts.size() * kMaxValue);
  for (size_t i = 0; i < facts.size(); ++i) {
    std::copy_n(facts[i].value.begin(), std::min(facts[i].value.size(), kMaxValue),
                mine.begin() + static_cast<std::ptrdiff_t>(i * kMaxValue));
  }
  std::vector<char> all(static_cast<size_t>(ranks.size()) * mine.size());
  ranks.AllGather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), cancel);
  const auto value = [&](int rank, size_t fact) {
    const std::string_view padded(&all[static_cast<size_t>(rank) * mine.size() + fact * kMaxValue],
                                  kMaxValue);
    return padded.substr(0, padded.find('\0'));
  };
  for (size_t fact = 0; fact < facts.size(); ++fact) {
    for (int rank = 1; rank < ranks.size(); ++rank) {
      if (value(rank, fact) == value(0, fact)) continue;
      ThrowWith(ReportedByRankZero(ranks), ErrorKind::kInput,
                "the ranks differ in {}: {} has {}, and {} has {}", facts[fact].name,
                ranks.NameOf(0), value(0, fact), ranks.NameOf(rank), value(rank, fact));
    }
  }
}

}  // namespace godwit
