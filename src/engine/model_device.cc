#include "engine/model_device.h"

#include <optional>

#include "base/error.h"
#include "base/machine_memory.h"

namespace godwit {
namespace {

// The use that a decoder makes of its GPU.
DeviceUse UseOf(const Decoder& decoder, const ops::Gpu& gpu, bool attends) {
  const GpuPlan& plan = *decoder.gpu_plan();
  return {.name = gpu.name(),
          .layers = plan.layers,
          .model_layers = decoder.spec().layers,
          .host_mlps = plan.host_mlps,
          .shared_mlps = plan.shared_mlps,
          .head = plan.head,
          .weight_bytes = plan.weight_bytes,
          .scratch_bytes = plan.scratch_bytes,
          .window_bytes = plan.window_bytes,
          .attends = attends,
          .host_bytes = plan.host_bytes,
          .limit_bytes = gpu.limit_bytes(),
          .total_bytes = gpu.total_bytes()};
}

}  // namespace

void CheckDeviceName(const std::string& device) { (void)ops::ParseDevice(device); }

std::shared_ptr<ops::Gpu> OpenDevice(const std::string& device, int64_t gpu_memory_bytes) {
  const std::optional<ops::DeviceName> name = ops::ParseDevice(device);
  if (name) return ops::OpenGpu(*name, gpu_memory_bytes);
  if (gpu_memory_bytes == 0) return nullptr;
  Throw(ErrorKind::kInput, "{} of a GPU's memory are set, and the model computes on the CPU alone",
        FormatBytes(gpu_memory_bytes));
}

GpuPlan PlanForDevice(const ModelFolder& model, std::optional<DType> storage, int64_t step_rows,
                      bool attends, const GpuWindow& window, const ops::Gpu& gpu) {
  RequireGpuLayers(model.spec());
  GpuShapes shapes = GpuShapesOf(model.spec(), model.tensors(), storage);
  AddGpuAttention(model.spec(), attends, window, shapes);
  return PlanGpu(shapes, step_rows, gpu.name(), gpu.limit_bytes());
}

std::optional<DeviceUse> PlaceOnDevice(Decoder& decoder, std::shared_ptr<ops::Gpu> gpu,
                                       int64_t step_rows, bool attends, const GpuWindow& window) {
  if (gpu == nullptr) return std::nullopt;
  decoder.PlaceOn(gpu, step_rows, attends, window);
  return UseOf(decoder, *gpu, attends);
}

}  // namespace godwit
