#include "attention/policies/dense.h"

#include "base/error.h"

namespace godwit {
namespace {

class DensePolicy : public AttentionPolicy {
 public:
  DensePolicy(const AttentionGeometry& geometry, int64_t context)
      : geometry_(geometry), context_(context) {}

  std::string name() const override { return "dense"; }
  std::string Explain() const override { return "Every token is kept and seen (full attention)."; }
  int64_t limit_tokens() const override { return context_; }
  int64_t max_kept_tokens() const override { return context_; }
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
  int64_t context_;
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
