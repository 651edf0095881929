// Speculation: the model reads draft tokens together with the last token, and keeps those that it
// would have chosen itself (TokenSwift, arXiv 2502.18890).
//
// The text is that of Autoregressive, to the token and under sampling, too. A row of the tree has
// the bits of the same row in a chain. Its token is drawn once, by the position in the text, under
// the penalties of its own path. The walk ends where no draft token is that token. (The published
// rule draws for every path anew, and takes the longest: drafts become likelier than they are.)
#pragma once

#include <memory>
#include <vector>

#include "base/stopwatch.h"
#include "generate/draft_tree.h"
#include "generate/strategy.h"

namespace godwit {

struct DraftStats {
  int64_t steps = 0;         // decode steps
  int64_t draft_tokens = 0;  // draft tokens that they read
  struct Accepted {
    std::string_view source;
    int64_t draft_tokens;
    int64_t skipped_steps =
        0;  // steps without this source, because it took more time than it saved
  };
  std::vector<Accepted> accepted;  // of every source
};

class Speculative : public Strategy {
 public:
  // now_ms: the clock that measures the sources.
  explicit Speculative(std::vector<std::unique_ptr<DraftSource>> sources, NowMs now_ms = SteadyMs,
                       DraftShape shape = {});

  Proposal Propose(const Sequence& sequence, int64_t max_tokens) override;
  std::span<const int32_t> Accept(Sequence& sequence, const Outcome& outcome) override;
  void EndStep(const LanguageModel& model, const Exec& exec) override;
  int64_t MaxRows() const override { return tree_.shape().rows; }
  bool ReleaseMemory() override;
  const DraftStats& stats() const { return stats_; }

 private:
  // Calls ask(drafts) of every source that does not rest.
  template <typename Ask>
  void AskAll(const Ask& ask);
  int64_t Walk(Sequence& sequence, const Outcome& outcome, int64_t& row);
  void CountWorth(const Outcome& outcome);
  void CountDraftedSteps();
  bool PlainStepIsDue() const { return drafted_steps_ >= plain_after_; }

  DraftTree tree_;
  StepCosts costs_;
  DraftStats stats_;
  bool continues_ = false;     // whether the step in progress is a decode step
  bool grown_ = false;         // whether the step reads the tree
  int64_t drafted_steps_ = 0;  // steps since the last one without draft tokens
  // Limit of drafted_steps_, low as the first steps of a process take long
  int64_t plain_after_ = 4;
  NowMs now_ms_;
  // [sources], tokens of the last step for which the source was needed
  std::vector<int64_t> accepted_;
  int64_t own_rows_ = 0;
  int64_t other_rows_ = 0;  // rows of other texts in the last step
};

}  // namespace godwit
