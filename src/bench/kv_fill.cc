#include "bench/kv_fill.h"

#include <algorithm>

#include "attention/make_policy.h"
#include "base/rng.h"

namespace godwit::bench {
namespace {

// Copies what the model hands to its policy.
class Recorder : public AttentionPolicy {
 public:
  using Rows = std::vector<std::vector<float>>;
  Recorder(AttentionPolicy& inner, Rows& k, Rows& v) : inner_(inner), k_(k), v_(v) {}

  int64_t length() const override { return inner_.length(); }
  void Begin(int64_t tokens) override { inner_.Begin(tokens); }
  int64_t max_length() const override { return inner_.max_length(); }
  int64_t max_step_tokens() const override { return inner_.max_step_tokens(); }
  void Attend(int64_t layer, const AttentionInput& input, const Exec& exec,
              MatrixView<float> out) override {
    const auto copy = [](MatrixView<const float> from, std::vector<float>& to) {
      for (int64_t row = 0; row < from.rows; ++row) {
        to.insert(to.end(), from.Row(row), from.Row(row) + from.cols);
      }
    };
    copy(input.k, k_[static_cast<size_t>(layer)]);
    copy(input.v, v_[static_cast<size_t>(layer)]);
    inner_.Attend(layer, input, exec, out);
  }
  void End() override { inner_.End(); }
  bool CanTruncate(int64_t length) const override { return inner_.CanTruncate(length); }
  void Truncate(int64_t length) override { inner_.Truncate(length); }
  KvStats Stats() const override { return inner_.Stats(); }

 private:
  AttentionPolicy& inner_;
  Rows& k_;
  Rows& v_;
};

}  // namespace

KvSample::KvSample(const Decoder& model, const Exec& exec, std::span<const int32_t> tokens)
    : cols_(model.spec().kv_heads * model.spec().head_dim),
      rows_(std::ssize(tokens)),
      k_(static_cast<size_t>(model.spec().layers)),
      v_(static_cast<size_t>(model.spec().layers)) {
  const auto dense = MakePolicy(Geometry(model.spec()),
                                {.spec = "dense", .kv_type = DType::kF32, .context = rows_});
  Recorder recorder(*dense, k_, v_);
  Workspace::Scope scope(exec.workspace);
  const Segment segment{tokens, &recorder};
  model.Forward(exec, {&segment, 1}, exec.workspace.Matrix<float>(rows_, model.hidden_size()));
}

void KvSample::Extend(AttentionPolicy& policy, const Exec& exec, int64_t length,
                      int64_t chunk_tokens) const {
  while (policy.length() < length) {
    const int64_t first = policy.length();
    const int64_t tokens = std::min({length - first, chunk_tokens, policy.max_step_tokens()});
    Workspace::Scope scope(exec.workspace);
    const auto k = exec.workspace.Matrix<float>(tokens, cols_);
    const auto v = exec.workspace.Matrix<float>(tokens, cols_);
    policy.Begin(tokens);
    for (size_t layer = 0; layer < k_.size(); ++layer) {
      exec.ParallelRows(tokens, 2 * cols_, [&](int64_t row) {
        const uint64_t draw = RandomBits(/*seed=*/2, layer, first + row, 0);
        const auto from = static_cast<int64_t>(draw % static_cast<uint64_t>(rows_)) * cols_;
        std::copy_n(k_[layer].data() + from, cols_, k.Row(row));
        std::copy_n(v_[layer].data() + from, cols_, v.Row(row));
      });
      policy.Attend(static_cast<int64_t>(layer), {.q = {}, .k = k, .v = v}, exec, {});
    }
    policy.End();
  }
}

}  // namespace godwit::bench
