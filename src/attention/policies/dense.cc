#include "attention/policies/dense.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"

namespace godwit {
namespace {

std::string Explanation(const AttentionGeometry& geometry) {
  if (!geometry.key_index) return "Every token is kept and seen (full attention).";
  return fmt::format(
      "Every token is kept. The model itself chooses the {} that a token sees, by an index that it "
      "was trained with.",
      geometry.key_index->best);
}

class DensePolicy : public AttentionPolicy {
 public:
  DensePolicy(const AttentionGeometry& geometry, int64_t context)
      : AttentionPolicy({.name = "dense",
                         .explanation = Explanation(geometry),
                         .limit_tokens = context,
                         .max_kept_tokens = context,
                         .shows_all = true,
                         .seen_window = INT64_MAX,
                         .one_rank_reason = ""}),
        geometry_(geometry) {}

  ops::KvRange Forgotten(int64_t /*length*/) const override { return {0, 0}; }

  int64_t SeenKeys(int64_t layer, int64_t position) const override {
    const int64_t shown = position + 1 - geometry_.SeenIn(layer).At(position).begin;
    return std::min(shown, geometry_.ChoosesFrom());
  }

  Looks Select(const RowRun& /*run*/, int64_t layer, const RunQueries& queries) override {
    Looks looks;
    looks.Add({.visible = geometry_.SeenIn(layer), .parts = queries.chosen});
    return looks;
  }

  std::unique_ptr<AttentionPolicy> Fork() const override {
    return std::make_unique<DensePolicy>(*this);
  }

 private:
  AttentionGeometry geometry_;
};

}  // namespace

std::unique_ptr<AttentionPolicy> MakeDensePolicy(const AttentionGeometry& geometry,
                                                 const PolicyOptions& options,
                                                 std::string_view arguments) {
  if (!arguments.empty()) {
    Throw(ErrorKind::kInput, "the KV policy \"dense\" takes no arguments, found \"{}\"", arguments);
  }
  return std::make_unique<DensePolicy>(geometry, options.context);
}

}  // namespace godwit
