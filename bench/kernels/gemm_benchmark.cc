// Matrix products of real layers on one core: ours beside oneDNN's, and both against the multiply
// peak of the instruction set, measured just before.
//
//   build/bench/bench/kernel_benchmark --benchmark_filter='bf16/.*/rows:512'

#include <benchmark/benchmark.h>

#include <dnnl.hpp>
#include <string>
#include <vector>

#include "base/rng.h"
#include "bench/kernels/onednn_matmul.h"
#include "bench/machine.h"
#include "kernels/dispatch.h"
#include "ops/linear.h"
#include "ops/pack_weight.h"
#include "tensor/workspace.h"

namespace godwit::bench {
namespace {

// Layers of the 1b shape (src/bench/shapes.cc).
struct Layer {
  const char* name;
  int64_t outputs, inputs;
};
constexpr Layer kLayers[] = {{"qkv", 3072, 2048},
                             {"attention_out", 2048, 2048},
                             {"gate_up", 16384, 2048},
                             {"down", 2048, 8192},
                             {"head", 32000, 2048}};
constexpr int64_t kRows[] = {1, 4, 16, 512};

struct Type {
  const char* name;
  DType dtype;
};
constexpr Type kTypes[] = {{"f32", DType::kF32}, {"bf16", DType::kBF16}, {"int8", DType::kI8}};

struct Product {
  Type type;
  Layer layer;
  int64_t rows;
};

// Reports rates of a run of `state` with one product in each iteration.
void Report(benchmark::State& state, const Product& product, double peak) {
  const auto multiply_adds =
      static_cast<double>(product.rows * product.layer.outputs * product.layer.inputs);
  const auto bytes = static_cast<double>(product.layer.outputs * product.layer.inputs *
                                         static_cast<int64_t>(SizeOf(product.type.dtype)));
  using benchmark::Counter;
  const auto rate = Counter::kIsIterationInvariantRate;
  state.counters["op/s"] = Counter(2 * multiply_adds, rate);
  state.counters["weights/s"] = Counter(bytes, rate, Counter::kIs1024);
  state.counters["of_peak"] = Counter(multiply_adds / peak, rate);
}

const kernels::Isa& TheIsa() { return kernels::SelectIsa(""); }

double Peak(DType dtype) {
  ThreadPool pool(1);
  return MachineProbe(TheIsa()).PeakOf(pool, dtype).per_second;
}

void Ours(benchmark::State& state, const Product& product) {
  const auto& [type, layer, rows] = product;
  ThreadPool pool(1);
  Workspace workspace;
  const Exec exec{.pool = pool, .kernels = *TheIsa().table, .workspace = workspace};
  std::vector<float> x(rows * layer.inputs);
  std::vector<float> y(rows * layer.outputs);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7 % 13) / 8;
  const std::vector<float> row(layer.inputs, 0.5f);
  const Weight weight = ops::PackWeight(
      pool, DType::kF32, layer.outputs, layer.inputs,
      [&](int64_t) -> const void* { return row.data(); }, type.dtype);
  const double peak = Peak(type.dtype);
  for (auto _ : state) {
    ops::Linear(exec, {x.data(), rows, layer.inputs, layer.inputs}, weight,
                {y.data(), rows, layer.outputs, layer.outputs});
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
  Report(state, product, peak);
}

void OneDnn(benchmark::State& state, const Product& product) {
  try {
    OneDnnMatmul matmul(product.type.dtype, product.rows, product.layer.inputs,
                        product.layer.outputs);
    const double peak = Peak(product.type.dtype);
    for (auto _ : state) matmul.Run();
    Report(state, product, peak);
  } catch (const dnnl::error& error) {
    state.SkipWithError(error.what());
  }
}

void RegisterAll() {
  for (const Type& type : kTypes) {
    for (const Layer& layer : kLayers) {
      for (const int64_t rows : kRows) {
        const Product product{type, layer, rows};
        const std::string name =
            std::string(type.name) + "/" + layer.name + "/rows:" + std::to_string(rows);
        benchmark::RegisterBenchmark((name + "/godwit").c_str(), Ours, product)
            ->Unit(benchmark::kMicrosecond)
            ->UseRealTime();
        benchmark::RegisterBenchmark((name + "/oneDNN").c_str(), OneDnn, product)
            ->Unit(benchmark::kMicrosecond)
            ->UseRealTime();
      }
    }
  }
}

}  // namespace
}  // namespace godwit::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext("isa", std::string(godwit::bench::TheIsa().name));
  benchmark::AddCustomContext("oneDNN", godwit::bench::OneDnnVersion());
  godwit::bench::RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
