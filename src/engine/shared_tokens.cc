#include "engine/shared_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/machine_memory.h"
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

bool AllGive(Communicator& ranks, int64_t number) {
  std::vector<int64_t> all(ranks.size());
  ranks.AllGather(std::as_bytes(std::span(&number, 1)), std::as_writable_bytes(std::span(all)),
                  nullptr);
  return std::ranges::count(all, number) == std::ssize(all);
}

void AgreeOnModel(Communicator& ranks, const std::string& folder, Fact what_else) {
  Agree(ranks, std::array{Fact{"godwit's version", GODWIT_VERSION}, std::move(what_else),
                          Fact{"the model's fingerprint",
                               folder.empty() ? "" : ModelFingerprint(folder)}});
}

std::string MissingMemory(const Communicator& ranks, const TextPlan& plan, int64_t tokens,
                          int64_t query_tokens) {
  const int64_t wanted = plan.ShardBytes(tokens, query_tokens);
  const int64_t there = plan.pool().budget().bytes();
  if (wanted <= there) return "";
  return fmt::format(
      "the part of {} tokens that {} keeps takes {}, and it has {} for KV caches: use more ranks",
      tokens, ranks.NameOf(ranks.rank()), FormatBytes(wanted), FormatBytes(there));
}

RanksMemory CompareMemory(Communicator& ranks, const KvBudget& budget, std::string_view lack) {
  struct RankMemory {
    int64_t free_bytes;
    std::array<char, 512> lack;
  };
  RankMemory mine{.free_bytes = budget.bytes() - budget.used(), .lack = {}};
  std::copy_n(lack.begin(), std::min(lack.size(), mine.lack.size()), mine.lack.begin());
  std::vector<RankMemory> all(ranks.size());
  ranks.AllGather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)),
                  nullptr);
  RanksMemory memory{.lack = std::nullopt,
                     .free_bytes = std::ranges::min(all, {}, &RankMemory::free_bytes).free_bytes};
  const auto first =
      std::ranges::find_if(all, [](const RankMemory& one) { return one.lack[0] != 0; });
  if (first == all.end()) return memory;
  const std::string_view text(first->lack.data(), first->lack.size());
  memory.lack.emplace(ErrorKind::kMemory, std::string(text.substr(0, text.find('\0'))),
                      ReportedByRankZero(ranks));
  return memory;
}

}  // namespace godwit
