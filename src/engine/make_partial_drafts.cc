#include "engine/make_partial_drafts.h"

#include <algorithm>
#include <string>
#include <utility>

#include "attention/core/token_count.h"
#include "base/error.h"
#include "base/quote.h"
#include "base/split_text.h"
#include "generate/partial_drafts.h"
#include "generate/triforce_drafts.h"

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

struct TriForceOptions {
  PartialOptions part;
  TriForceDrafts::Lengths lengths{.inner = 2, .outer = ChainDrafts::kMaxDraftTokens};
  int64_t small = 256;  // tokens that the smaller model sees
};

// Gives each item of "budget=4096:block=64" to take(item, key, value), whose value is 0 where there
// is no number. Returns whether all items were taken.
template <typename Take>
bool TakeItems(std::string_view arguments, const Take& take) {
  if (arguments.empty()) return true;
  return std::ranges::all_of(SplitAt(':', arguments), [&](std::string_view item) {
    const size_t equals = std::min(item.find('='), item.size());
    return take(item, item.substr(0, equals),
                ParseTokenCount(item.substr(std::min(equals + 1, item.size()))).value_or(0));
  });
}

// Takes an item such as "budget=4096", "block=1" or "gradual". False: it is none of these.
bool TakePartial(std::string_view item, std::string_view key, int64_t value,
                 PartialOptions& options) {
  if (item == "gradual") {
    options.gradual = true;
  } else if (key == "budget" && value >= kMinBudget) {
    options.budget = value;
  } else if (key == "block" && value >= 1 && value <= kTile && kTile % value == 0) {
    options.block = value;
  } else {
    return false;
  }
  return true;
}

// Single tokens, unless blocks are asked for.
void SetGradualBlock(std::string_view arguments, PartialOptions& options) {
  if (options.gradual && arguments.find("block=") == std::string_view::npos) options.block = 1;
}

PartialOptions ParsePartial(std::string_view arguments) {
  PartialOptions options;
  const auto take = [&](std::string_view item, std::string_view key, int64_t value) {
    return TakePartial(item, key, value, options);
  };
  if (!TakeItems(arguments, take)) {
    Throw(ErrorKind::kInput,
          "the draft source \"partial\" takes budget=N, the number of tokens that it reads, {} or "
          "more, block=N, the number that it chooses together, 1, 2, 4, ... {}, and gradual, which "
          "replaces chosen tokens one by one (for example partial:budget=4096:block=1), not {}",
          kMinBudget, kTile, Quote(arguments));
  }
  SetGradualBlock(arguments, options);
  return options;
}

TriForceOptions ParseTriForce(std::string_view arguments) {
  constexpr int64_t kLeastSmall = 2 * kTile, kMostSmall = int64_t{1} << 20;
  constexpr int64_t kMost = ChainDrafts::kMaxDraftTokens;
  TriForceOptions options;
  const auto take = [&](std::string_view item, std::string_view key, int64_t value) {
    if (key == "small" && value >= kLeastSmall && value <= kMostSmall) {
      options.small = value;
    } else if (key == "inner" && value >= 1 && value < kMost) {
      options.lengths.inner = value;
    } else if (key == "outer" && value >= 1 && value <= kMost) {
      options.lengths.outer = value;
    } else {
      return TakePartial(item, key, value, options.part);
    }
    return true;
  };
  if (!TakeItems(arguments, take)) {
    Throw(ErrorKind::kInput,
          "the draft source \"triforce\" takes small=N, the number of tokens that the draft model "
          "sees, {} or more, inner=N, those that it draws at once, 1 to {}, outer=N, those of a "
          "chain, 1 to {}, and what \"partial\" takes (for example "
          "triforce:budget=4096:inner=2:outer=6), not {}",
          kLeastSmall, kMost - 1, kMost, Quote(arguments));
  }
  SetGradualBlock(arguments, options.part);
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

// Makes the policy that shows the part. Throws Error(kUnsupported) for this source of draft tokens
// if no part of the text can be looked at.
std::unique_ptr<AttentionPolicy> PolicyOfPart(std::string_view source,
                                              const PartialOptions& options,
                                              const AttentionGeometry& geometry,
                                              const PolicyOptions& text) {
  if (text.ranks != nullptr) {
    Throw(ErrorKind::kUnsupported,
          "the draft source \"{}\" needs the whole text on one rank, and {} ranks share it: "
          "leave it out, or run one rank",
          source, text.ranks->size());
  }
  if (!PolicyFactsOf(text.spec).shows_all) {
    Throw(ErrorKind::kUnsupported,
          "the draft source \"{}\" works with the KV policy dense only, and {} shows a part "
          "of the text itself: leave it out, or use dense",
          source, text.spec);
  }
  PolicyOptions part = text;
  part.spec = PolicyFor(options);
  part.prefill = "";
  part.gpu_window = 0;
  return MakePolicy(geometry, part);
}

}  // namespace

std::unique_ptr<DraftSource> MakePartialDrafts(std::string_view arguments,
                                               const AttentionGeometry& geometry,
                                               const PolicyOptions& text, NowMs now_ms) {
  const PartialOptions options = ParsePartial(arguments);
  return std::make_unique<PartialDrafts>(PolicyOfPart("partial", options, geometry, text),
                                         2 * options.budget, now_ms);
}

std::unique_ptr<DraftSource> MakeTriForceDrafts(
    std::string_view arguments, const AttentionGeometry& geometry, const PolicyOptions& text,
    const std::function<ModelText::Parts(const std::string& kv)>& small, NowMs now_ms) {
  constexpr int64_t kSinks = 4;  // as StreamingLLM has them
  const TriForceOptions options = ParseTriForce(arguments);
  auto policy = PolicyOfPart("triforce", options.part, geometry, text);
  return std::make_unique<TriForceDrafts>(
      std::move(policy), 2 * options.part.budget,
      small(fmt::format("sinks:{}+{}", kSinks, options.small - kSinks)), options.lengths, now_ms);
}

}  // namespace godwit
