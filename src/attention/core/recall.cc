#include "attention/core/recall.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <span>
#include <utility>

#include "attention/core/dense_weights.h"
#include "attention/core/policy_around.h"
#include "ops/attention_state.h"
#include "ops/read_keys.h"

namespace godwit {
namespace {

// The weights of a text's keys for one head, and their order. Earlier keys come first among equals.
struct HeadWeights {
  DenseWeights dense;
  std::vector<int32_t> order;  // heaviest first
};

// For each position up to the row's own: whether the row sees it with a KV head.
std::vector<bool> SeenOf(const Looks& looks, int64_t kv_head, int64_t position) {
  std::vector<bool> seen(position + 1);
  for (const Look& look : looks.span()) {
    const ops::KvRange visible = look.visible.At(position);
    const auto see = [&](int64_t first, int64_t last) {
      for (int64_t p = std::max(visible.begin, first); p < std::min(visible.end, last); ++p) {
        seen[p] = true;
      }
    };
    if (look.parts.empty()) {
      see(visible.begin, visible.end);
      continue;
    }
    for (const ops::TilePart& part : look.parts[kv_head]) {
      const int64_t tile = part.tile * kTileTokens;
      see(tile + part.begin, tile + part.end);
      for (int64_t i = part.begin; i < part.end && tile + i <= position; ++i) {
        if ((part.hidden >> i & 1) != 0) seen[tile + i] = false;
      }
    }
  }
  return seen;
}

PolicyFacts FactsOfRecall(PolicyFacts dense) {
  dense.separates_question = true;
  return dense;
}

class RecallPolicy : public PolicyAround, private DerivedIndex {
 public:
  RecallPolicy(const AttentionGeometry& geometry, std::unique_ptr<AttentionPolicy> dense,
               std::vector<MeasuredPolicy> measured)
      : PolicyAround(FactsOfRecall(dense->facts()), std::move(dense)),
        geometry_(geometry),
        measured_(std::move(measured)) {}

  int64_t row_by_row_from(int64_t /*layer*/) const override { return question_begin_; }

  void SetQuestion(const Question& question) override {
    question_begin_ = question.begin;
    for (const MeasuredPolicy& one : measured_) one.policy->SetQuestion(question);
  }
  void Plan(const RowRun& run) override {
    for (const MeasuredPolicy& one : measured_) one.policy->Plan(run);
  }
  const DerivedIndex* index() const override { return this; }

  Looks Select(const RowRun& run, int64_t layer, const RunQueries& queries) override {
    if (run.position >= question_begin_ && geometry_.windows[layer] == 0) {
      Measure(run, layer, queries);
    } else {
      for (const MeasuredPolicy& one : measured_) {  // the policy may learn of the run
        Workspace::Scope scope(queries.exec.workspace);
        one.policy->Select(run, layer, queries);
      }
    }
    return inner().Select(run, layer, queries);
  }

  std::unique_ptr<AttentionPolicy> Fork() const override {
    std::vector<MeasuredPolicy> measured;
    for (const MeasuredPolicy& one : measured_)
      measured.push_back({one.policy->Fork(), one.recall});
    auto fork = std::make_unique<RecallPolicy>(geometry_, inner().Fork(), std::move(measured));
    fork->question_begin_ = question_begin_;
    return fork;
  }

 private:
  // DerivedIndex: those of the measured policies.
  void Accept(int64_t length, std::span<const int64_t> path) override {
    for (const MeasuredPolicy& one : measured_) {
      if (DerivedIndex* const index = one.policy->index()) index->Accept(length, path);
    }
  }
  void Truncate(int64_t length) override {
    for (const MeasuredPolicy& one : measured_) {
      if (DerivedIndex* const index = one.policy->index()) index->Truncate(length);
    }
  }

  void Measure(const RowRun& run, int64_t layer, const RunQueries& queries) {
    const ops::AttentionShape& shape = geometry_.ShapeOf(layer);
    std::vector<HeadWeights> heads(shape.heads);
    queries.exec.Parallel(shape.heads, [&](int64_t head) {
      heads[head] = WeightsOf(run, layer, queries.q.Row(head), head);
    });
    for (const MeasuredPolicy& one : measured_) {
      Workspace::Scope scope(queries.exec.workspace);
      const Looks looks = one.policy->Select(run, layer, queries);
      std::vector<std::vector<bool>> seen;  // for each KV head
      for (int64_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
        seen.push_back(SeenOf(looks, kv_head, run.position));
      }
      const auto seen_with = [&](int64_t head) -> const std::vector<bool>& {
        return seen[head * shape.kv_heads / shape.heads];
      };
      std::vector<double> errors(heads.size());
      queries.exec.Parallel(shape.heads, [&](int64_t head) {
        const auto at = static_cast<size_t>(head);
        errors[at] = ErrorOf(run, layer, head, heads[at], seen_with(head), looks.before());
      });
      one.recall->index_bytes += looks.read_bytes();
      one.recall->tokens += layer == FirstMeasured() ? 1 : 0;
      one.recall->groups.resize(geometry_.layers * shape.kv_heads);
      for (int64_t head = 0; head < shape.heads; ++head) {
        const int64_t group = layer * shape.kv_heads + head * shape.kv_heads / shape.heads;
        Add(heads[head], seen_with(head), errors[head], one.recall->groups[group], *one.recall);
      }
    }
  }

  int64_t FirstMeasured() const {
    return std::ranges::find(geometry_.windows, 0) - geometry_.windows.begin();
  }

  HeadWeights WeightsOf(const RowRun& run, int64_t layer, const float* q, int64_t head) const {
    HeadWeights result{ComputeDenseWeights(geometry_, run, layer, q, head), {}};
    const std::vector<double>& weights = result.dense.weights;
    result.order.resize(weights.size());
    std::iota(result.order.begin(), result.order.end(), 0);
    const auto most = std::min(std::ssize(weights), Recall::kHeaviest.back());
    std::ranges::partial_sort(result.order, result.order.begin() + most, [&](int32_t a, int32_t b) {
      return weights[a] != weights[b] ? weights[a] > weights[b] : a < b;
    });
    result.order.resize(most);
    return result;
  }

  // The error of the head's output from the keys that it sees, against its output from all keys.
  // before: the states of all heads that the policy adds, or null.
  double ErrorOf(const RowRun& run, int64_t layer, int64_t head, const HeadWeights& weights,
                 const std::vector<bool>& seen, const float* before) const {
    const ops::AttentionShape& shape = geometry_.ShapeOf(layer);
    const int64_t dim = shape.value_dim(), kv_head = head * shape.kv_heads / shape.heads;
    std::vector<double> all(dim), shown(all.size());
    double sum = 0;
    if (before != nullptr) {
      std::vector<float> state(ops::PackedState(dim));
      ops::PackStates(dim, 1, before + head * ops::StateStride(dim), state.data());
      const double unit = std::exp(double{state[0]} * std::numbers::ln2 - weights.dense.log_sum);
      sum = unit * double{state[1]};
      for (size_t d = 0; d < shown.size(); ++d) shown[d] = unit * double{state[2 + d]};
    }
    std::vector<float> values(shape.head_dim * kTileTokens);
    for (int64_t p = 0; p <= run.position; ++p) {
      const int64_t slot = p % kTileTokens;
      if (slot == 0) {
        (shape.values_from ? ops::ReadKeys : ops::ReadValues)(
            run.cache->View(layer), shape.head_dim, kv_head, p / kTileTokens, values.data(),
            kTileTokens);
      }
      const double weight = weights.dense.weights[p];
      const bool sees = seen[p];
      sum += sees ? weight : 0;
      for (int64_t d = 0; d < dim; ++d) {
        const auto from =
            static_cast<size_t>((shape.values_from.value_or(0) + d) * kTileTokens + slot);
        const double part = weight * double{values[from]};
        all[d] += part;
        shown[d] += sees ? part : 0;
      }
    }
    double error = 0, length = 0;
    for (size_t d = 0; d < all.size(); ++d) {
      error += std::pow(shown[d] / sum - all[d], 2);
      length += all[d] * all[d];
    }
    return length > 0 ? std::sqrt(error / length) : 0;
  }

  static void Add(const HeadWeights& head, const std::vector<bool>& seen, double error,
                  Recall::Group& group, Recall& recall) {
    ++recall.heads;
    ++group.heads;
    recall.seen_keys += std::ranges::count(seen, true);
    double weight = 0;
    for (size_t p = 0; p < seen.size(); ++p) weight += seen[p] ? head.dense.weights[p] : 0;
    recall.weight += weight;
    group.weight += weight;
    recall.error += error;
    group.error += error;
    for (size_t i = 0; i < Recall::kHeaviest.size(); ++i) {
      const auto most = static_cast<size_t>(Recall::kHeaviest[i]);
      const auto heaviest = std::span(head.order).first(std::min(head.order.size(), most));
      const auto held = std::ranges::count_if(heaviest, [&](int32_t p) { return bool{seen[p]}; });
      const double share = static_cast<double>(held) / static_cast<double>(heaviest.size());
      recall.held[i] += share;
      if (i == Recall::kNamed) group.held += share;
    }
  }

  AttentionGeometry geometry_;
  std::vector<MeasuredPolicy> measured_;
  int64_t question_begin_ = 0;
};

}  // namespace

std::vector<Recall::Named> Recall::Groups(int64_t kv_heads) const {
  std::vector<Named> named;
  for (int64_t i = 0; i < std::ssize(groups); ++i) {
    const Group& group = groups[i];
    const auto heads = static_cast<double>(group.heads);
    if (group.heads == 0) continue;
    named.push_back({.layer = i / kv_heads,
                     .kv_head = i % kv_heads,
                     .held = group.held / heads,
                     .weight = group.weight / heads,
                     .error = group.error / heads});
  }
  return named;
}

std::vector<Recall::Named> Recall::Worst(int64_t kv_heads, size_t most) const {
  std::vector<Named> worst = Groups(kv_heads);
  std::ranges::stable_sort(worst, {}, &Named::held);
  worst.resize(std::min(worst.size(), most));
  return worst;
}

std::unique_ptr<AttentionPolicy> MakeRecallPolicy(const AttentionGeometry& geometry,
                                                  std::unique_ptr<AttentionPolicy> dense,
                                                  std::vector<MeasuredPolicy> measured) {
  RequireDenseWeights(geometry, "recall is");
  return std::make_unique<RecallPolicy>(geometry, std::move(dense), std::move(measured));
}

}  // namespace godwit
