#include "lab/memory_hint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "attention/make_policy.h"
#include "base/error.h"
#include "base/name_list.h"
#include "bench/suite_texts.h"
#include "kv/kv_budget.h"
#include "kv/kv_pool.h"
#include "ops/kv_layout.h"

namespace godwit::lab {
namespace {

// Depths that are advised are multiples of it, so that they read well.
constexpr int64_t kDepthStep = 1024;

// A suite beside its weights, and the flags that made it so.
struct Candidate {
  bench::SuiteOptions suite;
  int64_t weight_bytes = 0;
  std::vector<std::string> flags = {};
};

class Advisor {
 public:
  Advisor(const DecoderSpec& spec, std::span<const StoredWeights> storages)
      : spec_(spec), storages_(storages) {}

  bool Fits(const Candidate& candidate) const {
    try {
      bench::CheckMemory(spec_, candidate.suite, candidate.weight_bytes);
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  // The widest narrower storage of keys that fits, else the narrowest. None: there is no narrower
  // one, or keys lie in a file.
  std::optional<Candidate> NarrowerKeys(const Candidate& from) const {
    const auto& pool = from.suite.kv_pool;
    if (pool && pool->file() != nullptr) return std::nullopt;
    const AttentionGeometry geometry = Geometry(spec_);
    const int64_t bytes = LayoutOf(geometry, from.suite.policy.kv_type).page_bytes();
    std::optional<Candidate> narrower;
    for (const KvType& type : kKvTypes) {
      const KvLayout layout = LayoutOf(geometry, type.dtype);
      if (layout.page_bytes() >= bytes) continue;
      narrower = from;
      narrower->suite.policy.kv_type = type.dtype;
      if (pool) {
        narrower->suite.kv_pool =
            std::make_shared<KvPool>(layout, std::make_shared<KvBudget>(pool->budget().bytes()));
      }
      narrower->flags.push_back(fmt::format("--kv-type {}", type.name));
      if (Fits(*narrower)) break;
    }
    return narrower;
  }

  // The deepest tests alone where they are not alone and fit, else all tests at the largest lesser
  // depth that fits. None: no depth does.
  std::optional<Candidate> LesserDepth(const Candidate& from) const {
    const auto& cases = from.suite.cases;
    const int64_t deepest =
        std::ranges::max_element(cases, {}, &bench::TestCase::depth_tokens)->depth_tokens;
    const auto at = [&](int64_t depth) {
      Candidate candidate = from;
      std::erase_if(candidate.suite.cases,
                    [&](const bench::TestCase& test) { return test.depth_tokens != deepest; });
      for (bench::TestCase& test : candidate.suite.cases) test.depth_tokens = depth;
      candidate.flags.push_back(fmt::format("-d {}", depth));
      return candidate;
    };
    const bool others = std::ranges::any_of(
        cases, [&](const bench::TestCase& test) { return test.depth_tokens != deepest; });
    if (others && Fits(at(deepest))) return at(deepest);
    int64_t fits = 0, beyond = (deepest - 1) / kDepthStep + 1;  // steps
    while (beyond - fits > 1) {
      const int64_t steps = fits + (beyond - fits) / 2;
      (Fits(at(steps * kDepthStep)) ? fits : beyond) = steps;
    }
    if (fits == 0) return std::nullopt;
    return at(fits * kDepthStep);
  }

  // The most texts in a batch that fit, else one. None: there is no batch.
  std::optional<Candidate> FewerTexts(const Candidate& from) const {
    const auto& cases = from.suite.cases;
    for (int64_t n = std::ranges::max_element(cases, {}, &bench::TestCase::texts)->texts - 1; n > 0;
         --n) {
      Candidate candidate = from;
      for (bench::TestCase& test : candidate.suite.cases) test.texts = std::min(test.texts, n);
      candidate.flags.push_back(fmt::format("-np {}", n));
      if (n == 1 || Fits(candidate)) return candidate;
    }
    return std::nullopt;
  }

  // The widest narrower storage of weights that fits, else the narrowest. None: no narrower one.
  std::optional<Candidate> NarrowerWeights(const Candidate& from) const {
    std::optional<Candidate> narrower;
    for (const StoredWeights& storage : storages_) {
      if (storage.bytes >= from.weight_bytes) continue;
      narrower = from;
      narrower->weight_bytes = storage.bytes;
      narrower->flags.push_back(fmt::format("--weights {}", storage.name));
      if (Fits(*narrower)) break;
    }
    return narrower;
  }

 private:
  const DecoderSpec& spec_;
  const std::span<const StoredWeights> storages_;
};

}  // namespace

std::string MemoryHint(const DecoderSpec& spec, const bench::SuiteOptions& suite,
                       int64_t weight_bytes, std::span<const StoredWeights> storages) {
  const Advisor advisor(spec, storages);
  using Change = std::optional<Candidate> (Advisor::*)(const Candidate&) const;
  // A depth that fits is looked for last.
  constexpr Change kChanges[] = {&Advisor::NarrowerKeys, &Advisor::NarrowerWeights,
                                 &Advisor::FewerTexts, &Advisor::LesserDepth};
  constexpr unsigned kSets = 1U << std::size(kChanges);
  // As few changes as will do; of one alone, all that do.
  for (int size = 1; size <= static_cast<int>(std::size(kChanges)); ++size) {
    std::vector<std::string> hints;
    for (unsigned set = 1; set < kSets; ++set) {
      if (std::popcount(set) != size || (size > 1 && !hints.empty())) continue;
      std::optional<Candidate> all = Candidate{.suite = suite, .weight_bytes = weight_bytes};
      for (size_t i = 0; i < std::size(kChanges) && all; ++i) {
        if ((set >> i & 1U) != 0) all = (advisor.*kChanges[i])(*all);
      }
      if (all && advisor.Fits(*all)) hints.push_back(fmt::format("{}", fmt::join(all->flags, " ")));
    }
    if (!hints.empty()) return NameList(hints, std::identity(), ", or ");
  }
  return "";
}

}  // namespace godwit::lab
