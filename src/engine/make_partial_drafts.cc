#include "engine/make_partial_drafts.h"

#include <algorithm>
#include <optional>
#include <string>

#include "attention/core/token_count.h"
#include "base/error.h"
#include "base/quote.h"
#include "generate/partial_drafts.h"

namespace godwit {
namespace {

constexpr int64_t kBlock = kTileTokens, kMinBudget = 4 * kBlock;

int64_t BudgetOf(std::string_view arguments) {
  constexpr std::string_view kBudget = "budget=";
  if (arguments.empty()) return 4096;
  std::optional<int64_t> budget;
  if (arguments.starts_with(kBudget)) budget = ParseTokenCount(arguments.substr(kBudget.size()));
  if (!budget || *budget < kMinBudget) {
    Throw(ErrorKind::kInput,
          "the draft source \"partial\" takes budget=N, the number of tokens that it reads, {} or "
          "more (for example partial:budget=4096), not {}",
          kMinBudget, Quote(arguments));
  }
  return *budget;
}

// The first block, the last tokens, and the most important blocks between. A chain chooses them
// once, because in a long text comparing all blocks takes as long as everything else.
std::string PolicyFor(int64_t budget) {
  const int64_t local = budget / 4 / kBlock * kBlock;
  return fmt::format(
      "blocks:initial={0},local_windows_len={1},second_block_count={2},token_step={0}", kBlock,
      local, (budget - kBlock - local) / kBlock);
}

}  // namespace

std::unique_ptr<DraftSource> MakePartialDrafts(std::string_view arguments,
                                               const AttentionGeometry& geometry,
                                               const PolicyOptions& text, NowMs now_ms) {
  const int64_t budget = BudgetOf(arguments);
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
  part.spec = PolicyFor(budget);
  part.prefill = "";
  return std::make_unique<PartialDrafts>(MakePolicy(geometry, part), 2 * budget, now_ms);
}

}  // namespace godwit
