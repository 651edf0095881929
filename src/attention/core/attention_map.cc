#include "attention/core/attention_map.h"

#include <utility>

#include "attention/core/dense_weights.h"
#include "attention/core/policy_around.h"

namespace godwit {
namespace {

class AttentionMapPolicy : public PolicyAround {
 public:
  AttentionMapPolicy(const AttentionGeometry& geometry, std::unique_ptr<AttentionPolicy> dense,
                     AttentionMap& map)
      : PolicyAround(dense->facts(), std::move(dense)), geometry_(geometry), map_(&map) {}

  int64_t row_by_row_from(int64_t /*layer*/) const override { return 0; }

  Looks Select(const RowRun& run, int64_t layer, const RunQueries& queries) override {
    for (int64_t head = 0; head < geometry_.shape.heads; ++head) {
      const auto weights =
          ComputeDenseWeights(geometry_, run, layer, queries.q.Row(head), head).weights;
      const auto row = map_->Row(layer, head, run.position);
      for (size_t key = 0; key < weights.size(); ++key) row[key] += weights[key];
    }
    return inner().Select(run, layer, queries);
  }

  std::unique_ptr<AttentionPolicy> Fork() const override {
    return std::make_unique<AttentionMapPolicy>(*this);
  }

 private:
  AttentionGeometry geometry_;
  AttentionMap* map_;
};

}  // namespace

double AttentionMap::MeanOfFirst(int64_t layer, int64_t head, int64_t from, int64_t keys) const {
  double sum = 0;
  for (int64_t query = from; query < tokens_; ++query) {
    for (int64_t key = 0; key < keys; ++key) sum += Mean(layer, head, query, key);
  }
  return sum / static_cast<double>(tokens_ - from);
}

std::unique_ptr<AttentionPolicy> MakeAttentionMapPolicy(const AttentionGeometry& geometry,
                                                        std::unique_ptr<AttentionPolicy> dense,
                                                        AttentionMap& map) {
  RequireDenseWeights(geometry, "attention maps are");
  return std::make_unique<AttentionMapPolicy>(geometry, std::move(dense), map);
}

}  // namespace godwit
