#include "engine/make_partial_drafts.h"

#include <algorithm>
#include <string>

#include "attention/core/token_count.h"
#include "base/error.h"
#include "base/quote.h"
#include "base/split_text.h"
#include "generate/partial_drafts.h"

namespace godwit {
namespace {

constexpr int64_t kTile = kTileTokens, kMinBudget = 4 * kTile;

struct PartialOptions {
  int64_t budget = 4096;  // tokens that a draft token sees
  int64_t block = kTile;  // tokens that are chosen together
};

// Parses "budget=4096:block=64", each optional.
PartialOptions ParsePartial(std::string_view arguments) {
  PartialOptions options;
  if (arguments.empty()) return options;
  for (const std::string_view item : SplitAt(':', arguments)) {
    const size_t equals = std::min(item.find('='), item.size());
    const std::string_view key = item.substr(0, equals);
    const int64_t value =
        ParseTokenCount(item.substr(std::min(equals + 1, item.size()))).value_or(0);
    if (key == "budget" && value >= kMinBudget) {
      options.budget = value;
    } else if (key == "block" && value >= 1 && value <= kTile && kTile % value == 0) {
      options.block = value;
    } else {
      Throw(
          ErrorKind::kInput,
          "the draft source \"partial\" takes budget=N, the number of tokens that it reads, {} or "
          "more, and block=N, the number that it chooses together, 1, 2, 4, ... {} (for example "
          "partial:budget=4096:block=1), not {}",
          kMinBudget, kTile, Quote(arguments));
    }
  }
  return options;
}

// The first block, the last tokens, and the most important blocks between. A chain chooses them
// once, because in a long text comparing all blocks takes as long as everything else. The keys of
// small blocks are averaged: a pattern of signs is for tiles.
std::string PolicyFor(const PartialOptions& options) {
  const int64_t local = options.budget / 4 / kTile * kTile;
  std::string spec =
      fmt::format("blocks:initial={0},local_windows_len={1},second_block_count={2},token_step={0}",
                  kTile, local, (options.budget - kTile - local) / options.block);
  if (options.block < kTile) {
    spec += fmt::format(",block_size={},representative_type=MEAN", options.block);
  }
  return spec;
}

}  // namespace

std::unique_ptr<DraftSource> MakePartialDrafts(std::string_view arguments,
                                               const AttentionGeometry& geometry,
                                               const PolicyOptions& text, NowMs now_ms) {
  const PartialOptions options = ParsePartial(arguments);
  if (text.ranks != nullptr) {
    Throw(ErrorKind::kUnsupported,
          "the draft source \"partial\" needs the whole text on one rank, and {} ranks share it: "
          "leave it out, or run one rank",
          text.ranks->size());
  }
  if (!PolicyFactsOf(text.spec).shows_all) {
    Throw(ErrorKind::kUnsupported,
          "the draft source \"partial\" works with the KV policy dense only, and {} shows a part "
          "of the text itself: leave it out, or use dense",
          text.spec);
  }
  PolicyOptions part = text;
  part.spec = PolicyFor(options);
  part.prefill = "";
  return std::make_unique<PartialDrafts>(MakePolicy(geometry, part), 2 * options.budget, now_ms);
}

}  // namespace godwit
