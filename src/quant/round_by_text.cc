#include "quant/round_by_text.h"

#include "base/machine_memory.h"
#include "quant/calibrate.h"
#include "quant/stage_hooks.h"

namespace godwit::quant {
namespace {

// Runs of neighbouring layers, each as long as their products fit into `bytes`.
std::vector<std::span<const LinearTensors* const>> Runs(std::span<const LinearTensors* const> all,
                                                        int64_t bytes) {
  std::vector<std::span<const LinearTensors* const>> runs;
  size_t begin = 0;
  int64_t taken = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const int64_t more = InputProducts::Bytes(all[i]->inputs());
    if (i > begin && taken + more > bytes) {
      runs.push_back(all.subspan(begin, i - begin));
      begin = i;
      taken = 0;
    }
    taken += more;
  }
  if (begin < all.size()) runs.push_back(all.subspan(begin));
  return runs;
}

}  // namespace

GroupedMatrices RoundByText(const Exec& exec, const Decoder& decoder,
                            std::span<const std::vector<int32_t>> pieces, const QuantPlan& plan,
                            const Scheme& scheme, const Scalings& scalings,
                            const StageHooks& hooks) {
  GroupedMatrices rounded;
  std::vector<const LinearTensors*> linears = plan.linears;
  std::erase_if(linears, [&](const LinearTensors* linear) { return plan.int8.contains(linear); });
  const auto runs = Runs(linears, ReadMachineMemory().available_bytes / 2);
  int64_t unreached = 0;
  for (size_t run = 0; run < runs.size(); ++run) {
    CalibrationScope scope{
        .linears = std::set<std::string, std::less<>>(), .samples = false, .products = true};
    for (const LinearTensors* linear : runs[run]) scope.linears->insert(ModuleName(*linear));
    const auto progress = [&](int64_t done, int64_t total) {
      if (!hooks.progress) return;
      hooks.progress(Stage::kRounding, static_cast<int64_t>(run) * total + done,
                     std::ssize(runs) * total);
    };
    Calibration calibration = Calibrate(exec, decoder, pieces, progress, scope);
    for (const LinearTensors* linear : runs[run]) {
      const auto seen = calibration.find(ModuleName(*linear));
      if (seen == calibration.end()) {
        ++unreached;
        continue;
      }
      const std::vector<MatrixPart> parts = PartsOf(*linear);
      const auto& divisors = FindScaling(scalings, parts.front().name).column_factors;
      const RoundingFeedback feedback(exec, seen->second.products.Take(exec), divisors);
      for (const MatrixPart& part : parts) {
        rounded[part.name] = QuantizeInGroups(exec, part, FindScaling(scalings, part.name),
                                              scheme.grouping(), &feedback);
      }
    }
  }
  if (unreached > 0 && hooks.warn) {
    hooks.warn(fmt::format(
        "no token of the text reached {} of the linear layers: they are rounded to the nearest",
        unreached));
  }
  return rounded;
}

}  // namespace godwit::quant
