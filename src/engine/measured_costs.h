// MeasuredCosts: what steps of an engine's model cost, for each storage of keys, and what draft
// tokens save. Thread-safe. Records allocate nothing once a kind is known.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include "attention/core/step_work.h"
#include "attention/make_policy.h"
#include "attention/policies/prefill_spec.h"
#include "engine/work_costs.h"

namespace godwit {

class MeasuredCosts {
 public:
  // The way in which keys and values are stored and multiplied, and whether a GPU does so for
  // contexts and for near tokens. Costs depend on all of it.
  using Kind = std::tuple<DType, bool, bool, bool>;
  static Kind KindOf(const PolicyOptions& options) {
    return {options.kv_type, options.int8_products, options.prefill == kGpuPrefill,
            options.gpu_window > 0};
  }

  // WorkCosts::Record.
  void Record(Kind kind, const StepWork& work, double ms);
  // Records a step that began with draft tokens of `draft` (GenerateOptions::draft), or could have,
  // and accepted so many tokens. plain: the work of a step without them.
  void RecordDrafted(Kind kind, std::string_view draft, const StepWork& plain, double ms,
                     int64_t accepted);

  // WorkCosts::Ms, and WorkCosts::Tells.
  std::optional<double> Ms(Kind kind, std::span<const StepWork> steps) const;
  bool Tells(Kind kind, std::span<const StepWork> steps) const;
  // The time of a token with draft tokens, as a share of that without; nothing before it is known.
  std::optional<double> DraftedShare(std::string_view draft) const;

  // The time to take tokens that were read in another text (ReuseTokens), by the latest of those
  // recorded; nothing before the first.
  void RecordReuse(Kind kind, int64_t tokens, double ms);
  std::optional<double> ReuseMs(Kind kind, int64_t tokens) const;

  // The depth to which costs of a kind were probed, in tokens; -1: they were not.
  int64_t probed(Kind kind) const;
  void SetProbed(Kind kind, int64_t tokens);

 private:
  struct Drafted {
    double plain_ms = 0, ms = 0;  // sums, in which old steps fade
    int64_t steps = 0;
  };

  struct Reused {
    double tokens = 0, ms = 0;  // sums, in which old ones fade
  };

  const WorkCosts* Find(Kind kind) const;

  mutable std::mutex mutex_;
  std::map<Kind, std::unique_ptr<WorkCosts>> costs_;
  std::map<Kind, int64_t> probed_;
  std::map<std::string, Drafted, std::less<>> drafted_;
  std::map<Kind, Reused> reused_;
};

}  // namespace godwit
