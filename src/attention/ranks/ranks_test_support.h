// Texts that are read by ranks, each of which is a thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "attention/attention_test_support.h"
#include "attention/core/kv_cost.h"
#include "dist/local.h"

namespace godwit {

constexpr int64_t kTokens = 700, kQuestionBegin = 660;

inline PolicyOptions StarOf(int64_t block, int64_t anchor, DType kv_type,
                            std::shared_ptr<Communicator> ranks = nullptr) {
  return {.kv_type = kv_type,
          .context = kTokens,
          .prefill = fmt::format("star:block={},anchor={}", block, anchor),
          .ranks = std::move(ranks)};
}

// The results of the tokens at these positions: [tokens, layers * heads * head_dim].
struct Read {
  std::vector<int64_t> positions;
  std::vector<float> out;
  int64_t bytes = 0;
  int64_t index_bytes = 0, planned_index_bytes = 0;
  int64_t met_keys = 0;  // in the last step
  // Where the text can go on: from the question, and from one token before it.
  int64_t restart = 0, restart_before = 0;
};

inline Read ReadAll(const AttentionGeometry& geometry, const TestText& text,
                    const PolicyOptions& options, int64_t chunk, int threads) {
  const auto cache = NewText(geometry, options);
  cache->SetQuestion(kQuestionBegin, kQuestionBegin);
  StepRunner runner(threads);
  Read read;
  while (cache->length() < kTokens) {
    const int64_t begin = cache->length();
    const int64_t next = cache->MaxNextTokens();
    const int64_t count = cache->AllRanksReadNext() ? next : std::min(chunk, next);
    const auto rows = RowRange(begin, std::min(begin + count, kTokens));
    const auto out = runner.Read(*cache, text, rows, count);
    read.positions.insert(read.positions.end(), rows.begin(), rows.end());
    read.out.insert(read.out.end(), out.begin(), out.end());
  }
  const KvStats stats = cache->Stats();
  read.bytes = stats.bytes;
  read.met_keys = stats.met_keys;
  read.restart = cache->RestartPoint(kQuestionBegin, INT64_MAX);
  read.restart_before = cache->RestartPoint(kQuestionBegin - 1, INT64_MAX);
  read.index_bytes = cache->index_bytes();
  read.planned_index_bytes =
      IndexAt(cache->policy(), LayoutOf(geometry, options.kv_type), kTokens - 1).held_bytes;
  return read;
}

inline std::vector<Read> ReadWithRanks(int ranks, const AttentionGeometry& geometry,
                                       const TestText& text, const PolicyOptions& options,
                                       int64_t chunk, int threads) {
  LocalWorld world(ranks);
  std::vector<Read> reads(ranks);
  std::vector<std::thread> members;
  for (int rank = 0; rank < ranks; ++rank) {
    members.emplace_back([&, rank] {
      PolicyOptions mine = options;
      mine.ranks = world.Rank(rank);
      reads[rank] = ReadAll(geometry, text, mine, chunk, threads);
    });
  }
  for (std::thread& member : members) member.join();
  return reads;
}

// The part of the results at positions >= `from`.
inline std::vector<float> From(const Read& read, int64_t from) {
  const auto first = std::ranges::lower_bound(read.positions, from) - read.positions.begin();
  const auto cols = std::ssize(read.out) / std::ssize(read.positions);
  return {read.out.begin() + first * cols, read.out.end()};
}

}  // namespace godwit
