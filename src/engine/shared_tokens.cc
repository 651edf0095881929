#include "engine/shared_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/machine_memory.h"
#include "dist/agreement.h"
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
  shared.resize(static_cast<size_t>(count));
  constexpr auto kMost = Communicator::kMostFrameBytes / static_cast<int64_t>(sizeof(int32_t));
  for (int64_t at = 0; at < count; at += kMost) {
    const auto piece = std::span(shared).subspan(static_cast<size_t>(at),
                                                 static_cast<size_t>(std::min(kMost, count - at)));
    ranks.Broadcast(std::as_writable_bytes(piece), 0, nullptr);
  }
  return shared;
}

bool AllGive(Communicator& ranks, int64_t number) {
  std::vector<int64_t> all(static_cast<size_t>(ranks.size()));
  ranks.AllGather(std::as_bytes(std::span(&number, 1)), std::as_writable_bytes(std::span(all)),
                  nullptr);
  return std::ranges::count(all, number) == std::ssize(all);
}

void AgreeOnModel(Communicator& ranks, const std::string& folder, int64_t step_tokens) {
  const std::vector<Fact> facts = {{"godwit's version", GODWIT_VERSION},
                                   {"the model's fingerprint", ModelFingerprint(folder)},
                                   {"the tokens of a step", fmt::format("{}", step_tokens)}};
  Agree(ranks, facts);
}

std::string LackOfMemory(const Communicator& ranks, const TextPlan& plan, int64_t tokens,
                         int64_t query_tokens) {
  const int64_t wanted = plan.ShardBytes(tokens, query_tokens);
  const int64_t there = plan.pool().budget().bytes();
  if (wanted <= there) return "";
  return fmt::format(
      "the part of {} tokens that {} keeps takes {}, and it has {} for KV caches: let there be "
      "more "
      "ranks",
      tokens, ranks.NameOf(ranks.rank()), FormatBytes(wanted), FormatBytes(there));
}

std::optional<Error> FirstLack(Communicator& ranks, std::string_view mine) {
  constexpr size_t kMost = 512;
  std::array<char, kMost> text{};
  std::copy_n(mine.begin(), std::min(mine.size(), kMost), text.begin());
  std::vector<char> all(static_cast<size_t>(ranks.size()) * kMost);
  ranks.AllGather(std::as_bytes(std::span(text)), std::as_writable_bytes(std::span(all)), nullptr);
  const auto first = std::ranges::find_if(all, [](char byte) { return byte != 0; });
  if (first == all.end()) return std::nullopt;
  const std::string_view lack(&*first, kMost);
  return Error(ErrorKind::kMemory, std::string(lack.substr(0, lack.find('\0'))),
               ToldByRankZero(ranks));
}

}  // namespace godwit
