#include "bench/suite_texts.h"

#include <algorithm>
#include <span>

#include "attention/core/kv_cost.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/machine_memory.h"

namespace godwit::bench {
namespace {

// The part of a text that ranks share, when the text reaches this length.
int64_t SharedContext(int64_t depth, int64_t length) { return depth > 0 ? depth : length - 1; }

}  // namespace

std::map<int64_t, std::vector<int64_t>> LengthsAtDepths(const SuiteOptions& options) {
  std::map<int64_t, std::vector<int64_t>> lengths;
  for (const TestCase& test : options.cases) {
    std::vector<int64_t>& texts = lengths[test.depth_tokens];
    texts.resize(std::max(texts.size(), static_cast<size_t>(test.texts)));
    for (int64_t& length : std::span(texts).first(test.texts)) {
      length = std::max(length, test.depth_tokens + test.tokens());
    }
  }
  return lengths;
}

int64_t QuestionBegin(const SuiteOptions& options, const TestCase& test) {
  const int64_t length = test.depth_tokens + test.prompt_tokens;
  return options.policy.ranks == nullptr ? length : SharedContext(test.depth_tokens, length);
}

void CheckMemory(const DecoderSpec& spec, const SuiteOptions& options, int64_t weight_bytes) {
  const KvLayout layout = options.kv_pool ? options.kv_pool->layout()
                                          : LayoutOf(Geometry(spec), options.policy.kv_type);
  int64_t kv_bytes = 0, index_bytes = 0, longest = 0, max_texts = 0;
  if (options.policy.ranks != nullptr) {  // each rank keeps its part of every context, or throws
    for (const TestCase& test : options.cases) {
      PolicyOptions policy_options = options.policy;
      policy_options.context = test.depth_tokens + test.tokens();
      MakePlacedPolicy(Geometry(spec), policy_options)
          .placement.SetQuestion(QuestionBegin(options, test));
    }
  }
  for (const auto& [depth, lengths] : LengthsAtDepths(options)) {
    PolicyOptions policy_options = options.policy;
    policy_options.context = lengths.front();
    // A policy evicts after the step, in whole tiles.
    auto [policy, placement] = MakePlacedPolicy(Geometry(spec), policy_options);
    const int64_t held =
        CheckedAdd(policy->facts().max_kept_tokens,
                   options.chunk_tokens + TextCache::kMaxRollbackTokens + 2 * kTileTokens)
            .value_or(INT64_MAX);
    for (const int64_t length : lengths) {
      const int64_t index = IndexAt(*policy, layout, length - 1).held_bytes;
      int64_t bytes = layout.BytesFor(std::min(length, held));
      if (options.policy.ranks != nullptr) {
        const int64_t context = SharedContext(depth, length);
        placement.SetQuestion(context);
        policy->SetQuestion({.begin = context, .choosable = placement.choosable()});
        bytes = HeldBytes(*policy, placement, layout, length) - index;
      }
      kv_bytes = CheckedAdd(kv_bytes, bytes).value_or(INT64_MAX);
      index_bytes = CheckedAdd(index_bytes, index).value_or(INT64_MAX);
    }
    longest = std::max(longest, lengths.front());
    max_texts = std::max(max_texts, std::ssize(lengths));
  }
  const int64_t all_bytes = CheckedAdd(kv_bytes, index_bytes).value_or(INT64_MAX);
  if (options.kv_pool && options.kv_pool->file() != nullptr) {
    options.kv_pool->Require(kv_bytes / layout.page_bytes());
    options.kv_pool->in_memory()->Require(index_bytes / layout.page_bytes());
    return RequireMemory(weight_bytes, "{} of weights take", FormatBytes(weight_bytes));
  }
  if (options.kv_pool) options.kv_pool->Require(all_bytes / layout.page_bytes());
  RequireMemory(CheckedAdd(weight_bytes, all_bytes).value_or(INT64_MAX),
                "{} of weights and {} of KV cache (up to {} tokens{}, in {}) take",
                FormatBytes(weight_bytes), FormatBytes(all_bytes), longest,
                max_texts > 1 ? fmt::format(" in each of {} texts", max_texts) : "",
                Name(options.policy.kv_type));
}

}  // namespace godwit::bench
