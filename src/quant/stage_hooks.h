// The hooks of a stage in the form that its steps take. For the files of this room.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "checkpoint/model_folder.h"
#include "ops/exec.h"
#include "quant/first_layers.h"
#include "quant/quantize_model.h"

namespace godwit::quant {

inline std::function<void(int64_t done, int64_t total)> ProgressOf(Stage stage,
                                                                   const StageHooks& hooks) {
  return [stage, &hooks](int64_t done, int64_t total) {
    if (hooks.progress) hooks.progress(stage, done, total);
  };
}

// The storage of layers whose inputs are looked at. Blocks would be multiplied with rounded inputs;
// wanted are the inputs of the numbers that blocks stand for.
inline std::optional<DType> StorageToLookAt(const WeightSource& weights) {
  const bool blocks = std::ranges::any_of(weights.Names(), [&](const std::string& name) {
    return weights.Find(name)->blocks != nullptr;
  });
  return blocks ? std::optional(DType::kBF16) : std::nullopt;
}

// Loads the first `layers` decoder layers, to be looked at.
inline std::unique_ptr<Decoder> LoadLayers(const Exec& exec, const ModelFolder& model,
                                           int64_t layers, const StageHooks& hooks) {
  return LoadFirstLayers(
      model.spec(), model.weights(), layers, exec.pool,
      {.progress = ProgressOf(Stage::kLoading, hooks), .warn = hooks.warn, .cancel = exec.cancel},
      StorageToLookAt(model.weights()));
}

}  // namespace godwit::quant
