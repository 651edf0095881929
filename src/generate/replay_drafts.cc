#include "generate/replay_drafts.h"

#include <cassert>
#include <utility>

#include "generate/draft_tree.h"
#include "generate/speculative.h"

namespace godwit {

Replay ReplayDrafts(std::span<const int32_t> text, int64_t from, const StepCosts& costs,
                    std::vector<std::unique_ptr<DraftSource>> sources) {
  assert(from >= 1 && costs.Ms(1) > 0);
  DraftTree tree(std::move(sources));
  Replay replay;
  int64_t length = from;
  while (length < std::ssize(text)) {
    const auto so_far = text.first(static_cast<size_t>(length));
    for (const auto& source : tree.sources()) source.drafts->Follow(so_far);
    tree.Grow(so_far, costs,
              {.rows = std::min(Speculative::kMostRows, costs.Largest()),
               .depth = std::min(Speculative::kMostDepth, std::ssize(text) - length - 1),
               .other_rows = 0});
    std::optional<int64_t> row = 0;
    while (row) row = tree.Step(*row, text[static_cast<size_t>(length++)]);
    ++replay.steps;
    replay.guesses += std::ssize(tree.tokens()) - 1;
    replay.ms += costs.Ms(std::ssize(tree.tokens()));
  }
  replay.tokens = length - from;
  replay.plain_ms = static_cast<double>(replay.tokens) * costs.Ms(1);
  return replay;
}

}  // namespace godwit
