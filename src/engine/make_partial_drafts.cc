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
  // Whether single tokens are chosen once in a while, and replaced gradually by those that come
  // after them (section 3.3 of the paper).
  bool gradual = false;
};

// Parses "budget=4096:block=64" or "budget=4096:gradual", each optional.
PartialOptions ParsePartial(std::string_view arguments) {
  PartialOptions options;
  if (arguments.empty()) return options;
  bool has_block = false;
  for (const std::string_view item : SplitAt(':', arguments)) {
    if (item == "gradual") {
      options.gradual = true;
      continue;
    }
    const size_t equals = std::min(item.find('='), item.size());
    const std::string_view key = item.substr(0, equals);
    const int64_t value =
        ParseTokenCount(item.substr(std::min(equals + 1, item.size()))).value_or(0);
    if (key == "budget" && value >= kMinBudget) {
      options.budget = value;
    } else if (key == "block" && value >= 1 && value <= kTile && kTile % value == 0) {
      options.block = value;
      has_block = true;
    } else {
      Throw(
          ErrorKind::kInput,
          "the draft source \"partial\" takes budget=N, the number of tokens that it reads, {} or "
          "more, block=N, the number that it chooses together, 1, 2, 4, ... {}, and gradual, which "
          "replaces chosen tokens one by one (for example partial:budget=4096:block=1), not {}",
          kMinBudget, kTile, Quote(arguments));
    }
  }
  if (options.gradual && !has_block) options.block = 1;
  return options;
}

// The first block, the last tokens, and the most important blocks between. A chain chooses them
// once, because in a long text comparing all blocks takes as long as everything else. The keys of
// small blocks are averaged: a pattern of signs is for tiles.
std::string PolicyFor(const PartialOptions& options) {
  if (options.gradual) {
    const int64_t chosen = (options.budget - kTile) / options.block;
    return fmt::format(
        "blocks:block_size={},representative_type={},initial={},local_windows_len=1,"
        "second_block_count={},token_step={},gradual=True,sum_scores=True",
        options.block, options.block < kTile ? "MEAN" : "SIGN", kTile, chosen,
        chosen * options.block);
  }
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
