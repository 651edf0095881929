// The GPU of a model: LoadOptions::device and gpu_memory_bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "checkpoint/model_folder.h"
#include "godwit/engine.h"
#include "model/decoder.h"
#include "model/gpu_plan.h"
#include "ops/gpu/gpu.h"
#include "tensor/dtype.h"

namespace godwit {

// Throws Error(kInput) for a name that is none.
void CheckDeviceName(const std::string& device);

// Opens the GPU; null: there is none. Throws Error(kInput) for a name that is none, and for memory
// of a GPU without one; and as ops::OpenGpu does.
std::shared_ptr<ops::Gpu> OpenDevice(const std::string& device, int64_t gpu_memory_bytes);

// The plan for the folder's model, before its weights are read. storage: as LoadDecoder takes it.
// attends: LoadOptions::gpu_attention. Throws as RequireGpuLayers, GpuShapesOf, AddGpuAttention and
// PlanGpu do.
GpuPlan PlanForDevice(const ModelFolder& model, std::optional<DType> storage, int64_t step_rows,
                      bool attends, const GpuWindow& window, const ops::Gpu& gpu);

// Lets a loaded decoder compute on the GPU; nullopt: there is none. gpu: null for none.
std::optional<DeviceUse> PlaceOnDevice(Decoder& decoder, std::shared_ptr<ops::Gpu> gpu,
                                       int64_t step_rows, bool attends = false,
                                       const GpuWindow& window = {});

}  // namespace godwit
