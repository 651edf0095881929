#include "engine/shared_tokens.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/model_fingerprint.h"
#include "godwit/version.h"

namespace godwit {

int64_t NumberOfRankZero(Communicator& ranks, int64_t number) {
  ranks.Broadcast(std::as_writable_bytes(std::span(&number, 1)), 0, nullptr);
  return number;
}

std::vector<int32_t> TokensOfRankZero(Communicator& ranks, std::span<const int32_t> tokens) {
  const int64_t count = NumberOfRankZero(ranks, std::ssize(tokens));
  std::vector<int32_t> shared(tokens.begin(), tokens.end());
  shared.resize(count);
  constexpr auto kMost = Communicator::kMaxFrameBytes / static_cast<int64_t>(sizeof(int32_t));
  for (int64_t at = 0; at < count; at += kMost) {
    const auto piece = std::span(shared).subspan(at, std::min(kMost, count - at));
    ranks.Broadcast(std::as_writable_bytes(piece), 0, nullptr);
  }
  return shared;
}

void AgreeOnModel(Communicator& ranks, const std::string& folder, Fact what_else) {
  Agree(ranks, std::array{Fact{"godwit's version", GODWIT_VERSION}, std::move(what_else),
                          Fact{"the model's fingerprint",
                               folder.empty() ? "" : ModelFingerprint(folder)}});
}

}  // namespace godwit
