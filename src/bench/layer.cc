#include "bench/layer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "attention/core/step.h"
#include "attention/make_policy.h"
#include "base/error.h"
#include "base/rng.h"
#include "kernels/packing.h"
#include "ops/activation.h"
#include "ops/attention.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/pack_weight.h"

namespace godwit::bench {
namespace {

constexpr double kFloat = sizeof(float);

// Rows of numbers between -most and most, the same on every machine.
class Rows {
 public:
  Rows(int64_t rows, int64_t cols, float most = 1.7f)
      : rows_(rows), cols_(cols), values_(rows * cols) {
    constexpr int64_t kDrawn = 4096;
    for (int64_t i = 0; i < std::ssize(values_); ++i) {
      const uint64_t bits = RandomBits(/*seed=*/3, /*sequence=*/0, i % kDrawn, /*draw=*/0);
      values_[i] = most * (static_cast<float>(bits >> 40) * 0x1p-23f - 1);
    }
  }
  operator MatrixView<float>() { return {values_.data(), rows_, cols_, cols_}; }
  operator MatrixView<const float>() const { return {values_.data(), rows_, cols_, cols_}; }
  float* Row(int64_t row) { return values_.data() + row * cols_; }

 private:
  int64_t rows_, cols_;
  std::vector<float> values_;
};

double SizeOfWeights(const Weight& w) { return static_cast<double>(w.bytes()); }

class Layer {
 public:
  Layer(const DecoderSpec& spec, const LayerOptions& options)
      : spec_(FirstLayers(spec, 1)),
        mlp_(KindOf(spec_, 0).mlp),
        options_(options),
        q_(spec_.heads * spec_.head_dim),
        kv_(spec_.kv_heads * spec_.head_dim),
        gate_up_(mlp_.gated ? 2 * mlp_.intermediate : mlp_.intermediate),
        pool_(1),
        exec_{.pool = pool_, .kernels = *options.isa->table, .workspace = workspace_},
        x_(options.rows, spec_.hidden_size),
        normed_(options.rows, spec_.hidden_size),
        y_(options.rows, spec_.hidden_size),
        qkv_rows_(options.rows, q_ + 2 * kv_),
        attended_(options.rows, q_),
        up_rows_(options.rows, gate_up_),
        inner_(options.rows, mlp_.intermediate),
        qkv_(Pack("qkv", q_ + 2 * kv_, spec_.hidden_size)),
        out_(Pack("out", spec_.hidden_size, q_)),
        gate_up_weight_(Pack("up", gate_up_, spec_.hidden_size)),
        down_(Pack("down", spec_.hidden_size, mlp_.intermediate)),
        tokens_(options.rows) {
    norm_ = {.kind = spec_.norm,
             .epsilon = spec_.norm_epsilon,
             .weight = std::vector<float>(spec_.hidden_size, 1.0f)};
    const PolicyOptions policy{.spec = "dense",
                               .kv_type = options.kv_type,
                               .int8_products = options.int8_products,
                               .context = options.depth + options.rows};
    text_ = MakeTextCache(Geometry(spec_), policy);
    for (int64_t left = options.depth; left > 0;) {
      const int64_t rows = std::min(left, options.rows);
      (void)Attend(rows, /*queries=*/false);
      left -= rows;
    }
  }

  LayerCount Count() {
    LayerCount count{.options = options_};
    MeasureLimits(count);
    AddParts(count);
    MeasureLimits(count);
    for (LayerPart& part : count.parts) {
      const bool attends = part.name == "attention";
      part.multiply_seconds =
          part.multiply_adds / (attends ? count.attention_peak : count.product_peak);
      part.memory_seconds = part.memory_bytes / count.memory_bytes_per_second;
      part.cache_seconds = part.cache_bytes / count.cache_bytes_per_second;
    }
    return count;
  }

 private:
  using Work = std::function<void()>;

  // Keeps the best rates, as the parts keep their best times.
  void MeasureLimits(LayerCount& count) {
    const auto keep = [](double rate, double& best) { best = std::max(best, rate); };
    Probe& probe = *options_.probe;
    const bool widens = options_.kv_type == DType::kI8 && !options_.int8_products;
    keep(probe.PeakOf(pool_, options_.weights).per_second, count.product_peak);
    keep(probe.PeakOf(pool_, widens ? DType::kF32 : options_.kv_type).per_second,
         count.attention_peak);
    keep(probe.ReadBandwidth(pool_).bytes_per_second, count.memory_bytes_per_second);
    keep(probe.CacheReadBandwidth(), count.cache_bytes_per_second);
  }

  Weight Pack(const char* name, int64_t outputs, int64_t inputs) {
    constexpr int64_t kDifferent = 61;
    // Products of normal rows are about normal, too.
    Rows rows(kDifferent, inputs, std::sqrt(3.0f / static_cast<float>(inputs)));
    Weight w = ops::PackWeight(
        pool_, DType::kF32, outputs, inputs,
        [&](int64_t output) -> const void* { return rows.Row(output % kDifferent); },
        options_.weights);
    w.name = name;
    return w;
  }

  // The rows go through the attention of the layer. With queries they are taken back. Returns the
  // keys and bytes that they looked at.
  KvStats Attend(int64_t rows, bool queries) {
    const int64_t length = text_->length();
    const Segment segment{.tokens = std::span(tokens_).first(rows), .text = text_.get()};
    {
      Workspace::Scope scope(workspace_);
      AttentionStep step(exec_, {&segment, 1});
      const MatrixView<float> all = MatrixView<float>(qkv_rows_).Rows(0, rows);
      const MatrixView<const float> none{};
      step.Attend(0,
                  {.q = queries ? MatrixView<const float>(all.Cols(0, q_)) : none,
                   .k = all.Cols(q_, q_ + kv_),
                   .v = all.Cols(q_ + kv_, all.cols)},
                  queries ? MatrixView<float>(attended_) : MatrixView<float>{});
      step.End();
    }
    KvStats stats = text_->Stats();
    if (queries) text_->Truncate(length);
    return stats;
  }

  // The least seconds, over some runs of the work, of a time of its profile.
  template <typename Of>
  double Least(const Work& work, const Of& nanoseconds) {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int64_t run = 0; run <= options_.runs; ++run) {  // the first warms up
      const ProfileTimes times = Profiled(work);
      if (run > 0) least = std::min(least, nanoseconds(times));
    }
    return static_cast<double>(least) / 1e9;
  }

  double Alone(StepPart part, const Work& work) {
    return Least(work, [&](const ProfileTimes& times) { return times.busy_of(part); });
  }

  ProfileTimes Profiled(const Work& work) {
    Profile profile = options_.clock ? Profile(1, options_.clock) : Profile(1);
    exec_.profile = &profile;
    profile.Start();
    work();
    profile.Stop();
    exec_.profile = nullptr;
    return profile.Times();
  }

  // A product's part. `rows` [rows, inputs], filled by SetRows, lie in the workspace.
  struct Product {
    const char* name;
    const Weight* w;
    MatrixView<const float> from;
    MatrixView<float> to;
  };

  void AddParts(LayerCount& count) {
    const auto rows = static_cast<double>(options_.rows);
    const auto hidden = static_cast<double>(spec_.hidden_size);
    std::vector<Work> in_order;
    const auto add = [&](LayerPart part, StepPart of, const Work& work) {
      part.seconds = Alone(of, work);
      count.parts.push_back(std::move(part));
    };

    const Work norm = [&] { ops::Norm(exec_, x_, norm_, normed_); };
    add({.name = "norm, twice", .cache_bytes = 2 * 2 * rows * hidden * kFloat}, StepPart::kNorms,
        [&] {
          norm();
          norm();
        });

    const Product products[] = {
        {"qkv", &qkv_, normed_, qkv_rows_},
        {"attention out", &out_, attended_, y_},
        {mlp_.gated ? "gate and up" : "up", &gate_up_weight_, normed_, up_rows_},
        {"down", &down_, inner_, y_}};
    double inputs = 0, input_bytes = 0;
    const Work quantize = [&] {
      for (const Product& product : products) {
        Workspace::Scope scope(workspace_);
        ops::LinearRows to = ops::NewLinearRows(exec_, *product.w, options_.rows);
        ops::SetRows(exec_, product.from, to);
      }
    };
    for (const Product& product : products) {
      Workspace::Scope scope(workspace_);
      const ops::LinearRows to = ops::NewLinearRows(exec_, *product.w, options_.rows);
      inputs += static_cast<double>(product.w->inputs);
      input_bytes += static_cast<double>(product.w->inputs) * BytesOf(to.dtype);
    }
    add({.name = "quantizing", .cache_bytes = rows * (inputs * kFloat + input_bytes)},
        StepPart::kQuantizing, quantize);

    for (const Product& product : products) {
      Workspace::Scope scope(workspace_);
      ops::LinearRows filled = ops::NewLinearRows(exec_, *product.w, options_.rows);
      ops::SetRows(exec_, product.from, filled);
      const auto in = static_cast<double>(product.w->inputs);
      const auto out = static_cast<double>(product.w->outputs);
      const auto panels = static_cast<double>(kernels::PanelCount(product.w->outputs));
      add({.name = product.name,
           .multiply_adds = rows * in * out,
           .memory_bytes = SizeOfWeights(*product.w),
           .cache_bytes = panels * rows * in * BytesOf(filled.dtype) + rows * out * kFloat},
          StepPart::kProducts, [&] { ops::Linear(exec_, filled, *product.w, product.to); });
    }

    const Work attend = [&] { (void)Attend(options_.rows, /*queries=*/true); };
    AddAttention(count, attend);

    const Work activate = [&] { Activate(); };
    add({.name = "activation",
         .cache_bytes = rows * static_cast<double>(gate_up_ + mlp_.intermediate) * kFloat},
        StepPart::kActivation, activate);

    const Work residual = [&] { ops::Add(exec_, y_, x_); };
    add({.name = "residual, twice", .cache_bytes = 2 * 3 * rows * hidden * kFloat}, StepPart::kAdds,
        [&] {
          residual();
          residual();
        });
    count.in_order_seconds = InOrder(products, norm, attend, activate, residual);
  }

  void AddAttention(LayerCount& count, const Work& attend) {
    const auto rows = static_cast<double>(options_.rows),
               depth = static_cast<double>(options_.depth);
    const auto q = static_cast<double>(q_), kv = static_cast<double>(kv_);
    const KvStats stats = Attend(options_.rows, /*queries=*/true);
    const auto cached = static_cast<double>(stats.read_bytes);  // by all rows together
    const double row_bytes = cached / (rows + depth);
    const auto met = static_cast<double>(stats.met_keys);  // of every KV head and row
    const auto group = static_cast<double>(spec_.heads / spec_.kv_heads);
    const auto head_dim = static_cast<double>(spec_.head_dim);
    LayerPart rope{.name = "rope and KV",
                   .memory_bytes = rows * row_bytes,
                   .cache_bytes = rows * (2 * q + 2 * kv) * kFloat};
    rope.seconds = Alone(StepPart::kRopeAndKv, attend);
    count.parts.push_back(rope);
    LayerPart attention{.name = "attention",
                        .multiply_adds = 2 * met * group * head_dim,
                        .memory_bytes = cached,
                        .cache_bytes = met * group / static_cast<double>(ops::kBlockRows) *
                                           (row_bytes / static_cast<double>(spec_.kv_heads)) +
                                       2 * rows * q * kFloat};
    attention.seconds = Alone(StepPart::kAttention, attend);
    count.parts.push_back(attention);
    count.parts.push_back(Powers(met * group));
  }

  // The powers of two of all scores, which attention takes inside its tiles.
  LayerPart Powers(double scores) {
    constexpr int64_t kScores = 4096;
    const Rows row(1, kScores);
    const MatrixView<const float> x = row;
    const auto calls = static_cast<int64_t>(scores / kScores);
    LayerPart part{.name = "  its softmax", .cache_bytes = 0, .inside = true};
    part.seconds = Alone(StepPart::kOneThread, [&] {
      for (int64_t i = 0; i < calls; ++i) (void)exec_.kernels.sum_powers(x.Row(0), kScores);
    });
    return part;
  }

  void Activate() {
    Workspace::Scope scope(workspace_);
    const MatrixView<float> to = inner_;
    ops::LinearRows plain{.dtype = DType::kF32,
                          .data = reinterpret_cast<std::byte*>(to.data),
                          .rows = to.rows,
                          .cols = to.cols,
                          .stride = to.stride};
    if (mlp_.gated) {
      ops::ActivateGated(exec_, mlp_.activation, up_rows_, {&plain, 1});
    } else {
      ops::Activate(exec_, mlp_.activation, up_rows_, plain);
    }
  }

  template <size_t kCount>
  double InOrder(const Product (&products)[kCount], const Work& norm, const Work& attend,
                 const Work& activate, const Work& residual) {
    const auto multiply = [&](const Product& product) {
      Workspace::Scope scope(workspace_);
      ops::LinearRows to = ops::NewLinearRows(exec_, *product.w, options_.rows);
      ops::SetRows(exec_, product.from, to);
      ops::Linear(exec_, to, *product.w, product.to);
    };
    const Work layer = [&] {
      norm();
      multiply(products[0]);
      attend();
      multiply(products[1]);
      residual();
      norm();
      multiply(products[2]);
      activate();
      multiply(products[3]);
      residual();
    };
    return Least(layer, [](const ProfileTimes& times) { return times.wall_ns; });
  }

  static double BytesOf(DType dtype) { return static_cast<double>(SizeOf(dtype)); }

  const DecoderSpec spec_;
  const MlpSpec& mlp_;
  const LayerOptions& options_;
  const int64_t q_, kv_, gate_up_;
  ThreadPool pool_;
  Workspace workspace_;
  Exec exec_;
  Rows x_, normed_, y_, qkv_rows_, attended_, up_rows_, inner_;
  const Weight qkv_, out_, gate_up_weight_, down_;
  ops::NormWeights norm_;
  const std::vector<int32_t> tokens_;
  std::unique_ptr<TextCache> text_;
};

template <typename Of>
double Sum(const std::vector<LayerPart>& parts, const Of& of) {
  double sum = 0;
  for (const LayerPart& part : parts) {
    if (!part.inside) sum += of(part);
  }
  return sum;
}

}  // namespace

double LayerPart::limit_seconds() const {
  return std::max({multiply_seconds, memory_seconds, cache_seconds});
}

double LayerCount::alone_seconds() const {
  return Sum(parts, [](const LayerPart& part) { return part.seconds; });
}

double LayerCount::limit_seconds() const {
  return Sum(parts, [](const LayerPart& part) { return part.limit_seconds(); });
}

double LayerCount::overlapped_seconds() const {
  return std::max({Sum(parts, [](const LayerPart& part) { return part.multiply_seconds; }),
                   Sum(parts, [](const LayerPart& part) { return part.memory_seconds; }),
                   Sum(parts, [](const LayerPart& part) { return part.cache_seconds; })});
}

LayerCount CountLayer(const DecoderSpec& spec, const LayerOptions& options) {
  const LayerKind& kind = KindOf(spec, 0);
  if (spec.latent || spec.gated_attention || kind.mixer != Mixer::kAttention || !HasMlp(kind) ||
      kind.mlp.experts > 0 || HasUnequalKeys(spec) || spec.layer_embedding) {
    Throw(ErrorKind::kUnsupported,
          "the parts of a layer are counted for models whose first layer has plain attention and "
          "no experts, and whose layers have equal heads; a profile of its steps shows them");
  }
  return Layer(spec, options).Count();
}

}  // namespace godwit::bench
