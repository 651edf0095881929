#include "engine/shared_tokens.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

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

void AgreeOnModel(Communicator& ranks, const std::string& folder) {
  const std::vector<Fact> facts = {{"godwit's version", GODWIT_VERSION},
                                   {"the model's fingerprint", ModelFingerprint(folder)}};
  Agree(ranks, facts);
}

void AgreeOnOptions(Communicator& ranks, const TextPlan& plan, const GenerateOptions& options) {
  const PolicyOptions& text = plan.options();
  const std::vector<Fact> facts = {
      {"how a text is kept", text.spec},
      {"how a context is read", text.prefill},
      {"how keys are stored", std::string(Name(text.kv_type))},
      {"int8 attention", fmt::format("{}", text.int8_products)},
      {"the longest text", fmt::format("{}", text.context)},
      {"the tokens of a chunk", fmt::format("{}", plan.chunk_tokens())},
      {"the drafts", options.draft},
      {"the longest answer", fmt::format("{}", options.max_tokens)},
      {"what ends an answer",
       fmt::format("{} {}", options.ignore_eos, fmt::join(options.stop, "\n"))}};
  Agree(ranks, facts);
}

void AgreeOnMemory(Communicator& ranks, const TextPlan& plan, int64_t tokens,
                   int64_t query_tokens) {
  struct Memory {
    int64_t wanted, there;
  };
  const Memory mine{plan.ShardBytes(tokens, query_tokens), plan.pool().budget().bytes()};
  std::vector<Memory> all(static_cast<size_t>(ranks.size()));
  ranks.AllGather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)),
                  nullptr);
  const auto lacks =
      std::ranges::find_if(all, [](const Memory& one) { return one.wanted > one.there; });
  if (lacks == all.end()) return;
  ThrowWith(ToldByRankZero(ranks), ErrorKind::kMemory,
            "the part of {} tokens that {} keeps takes {}, and it has {} for KV caches: let there "
            "be more ranks",
            tokens, ranks.NameOf(static_cast<int>(lacks - all.begin())), FormatBytes(lacks->wanted),
            FormatBytes(lacks->there));
}

}  // namespace godwit
