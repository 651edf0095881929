#include "attention/policies/dense.h"

#include "base/error.h"

namespace godwit {
namespace {

class DensePolicy : public AttentionPolicy {
 public:
  DensePolicy(const AttentionGeometry& geometry, int64_t context)
      : AttentionPolicy({.name = "dense",
                         .explanation = "Every token is kept and seen (full attention).",
                         .limit_tokens = context,
                         .max_kept_tokens = context,
                         .shows_all = true,
                         .one_rank_reason = ""}),
        geometry_(geometry) {}

  ops::KvRange Forgotten(int64_t /*length*/) const override { return {0, 0}; }

  int64_t SeenKeys(int64_t layer, int64_t position) const override {
    return position + 1 - geometry_.SeenIn(layer).At(position).begin;
  }

  Looks Select(const RowRun& /*run*/, int64_t layer, const RunQueries& /*queries*/) override {
    Looks looks;
    looks.Add({.visible = geometry_.SeenIn(layer)});
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
