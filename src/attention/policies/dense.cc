#include "attention/policies/dense.h"

#include "base/error.h"

namespace godwit {
namespace {

class DensePolicy : public AttentionPolicy {
 public:
  DensePolicy(const AttentionGeometry& geometry, int64_t context)
      : windows_(geometry.windows), context_(context) {}

  std::string name() const override { return "dense"; }
  int64_t limit_tokens() const override { return context_; }
  int64_t most_kept() const override { return context_; }
  ops::KvRange Forgotten(int64_t /*length*/) const override { return {0, 0}; }

  Looks Select(const RowRun& /*run*/, int64_t layer, const RunQueries& /*queries*/) override {
    const int64_t window = windows_[static_cast<size_t>(layer)];
    Looks looks;
    looks.Add({.visible = {.window = window == 0 ? INT64_MAX : window}});
    return looks;
  }

  std::unique_ptr<AttentionPolicy> Fork() const override {
    return std::make_unique<DensePolicy>(*this);
  }

 private:
  std::vector<int64_t> windows_;
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
