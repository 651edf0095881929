#include "ops/gpu/gpu.h"

#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/machine_memory.h"
#include "base/quote.h"
#include "cuda/cuda_device.h"
#include "cuda/device.h"
#include "cuda/emulated_device.h"

namespace godwit::ops {
namespace {

// The part of a GPU's free memory that is left to its driver, unless a limit is given.
constexpr int64_t kReservedPart = 16;

}  // namespace

std::optional<DeviceName> ParseDevice(std::string_view name) {
  if (name.empty() || name == "cpu") return std::nullopt;
  if (name == "emulated") return DeviceName{.kind = DeviceName::Kind::kEmulated};
  if (name == "cuda") return DeviceName{};
  constexpr std::string_view kNumbered = "cuda:";
  if (name.starts_with(kNumbered)) {
    const std::string_view digits = name.substr(kNumbered.size());
    int number = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc() && end == digits.data() + digits.size() && number >= 0) {
      return DeviceName{.number = number};
    }
  }
  Throw(ErrorKind::kInput,
        "a device is cpu, cuda, cuda:N with the number of a GPU, or emulated, "
        "found {}",
        Quote(name));
}

Gpu::Gpu(std::unique_ptr<cuda::Device> device, int64_t memory_bytes) : device_(std::move(device)) {
  const int64_t free_bytes = device_->FreeBytes();
  if (memory_bytes < 0) Throw(ErrorKind::kInput, "GPU memory of {} bytes", memory_bytes);
  if (memory_bytes > free_bytes) {
    cuda::ThrowNoDeviceMemory(name(), memory_bytes, free_bytes, total_bytes());
  }
  limit_bytes_ = memory_bytes > 0 ? memory_bytes : free_bytes - free_bytes / kReservedPart;
  stream_ = std::make_unique<cuda::Stream>(*device_);
  copies_ = std::make_unique<cuda::Stream>(*device_);
  scratch_ = std::make_unique<cuda::DeviceMemory>();
  host_ = std::make_unique<cuda::HostMemory>();
}

Gpu::~Gpu() = default;

const std::string& Gpu::name() const { return device_->facts().name; }
int64_t Gpu::total_bytes() const { return device_->facts().memory_bytes; }
int64_t Gpu::taken_bytes() const { return weight_bytes_ + scratch_->bytes(); }

void Gpu::RequireRoom(int64_t bytes) const {
  if (bytes <= limit_bytes_ - taken_bytes()) return;
  Throw(ErrorKind::kMemory,
        "{} lacks memory: {} are needed, and {} of {} that may be used are free", name(),
        FormatBytes(bytes), FormatBytes(limit_bytes_ - taken_bytes()), FormatBytes(limit_bytes_));
}

cuda::DeviceMemory Gpu::Take(int64_t bytes) {
  RequireRoom(bytes);
  cuda::DeviceMemory memory(*device_, bytes);
  weight_bytes_ += bytes;
  return memory;
}

void Gpu::ReserveScratch(int64_t bytes) {
  if (bytes <= scratch_->bytes()) return;
  *scratch_ = cuda::DeviceMemory();  // both at once might not fit
  RequireRoom(bytes);
  *scratch_ = cuda::DeviceMemory(*device_, bytes);
}

void Gpu::ReserveHost(int64_t bytes) {
  if (bytes <= host_->bytes()) return;
  *host_ = cuda::HostMemory();
  *host_ = cuda::HostMemory(*device_, bytes);
}

std::shared_ptr<Gpu> OpenGpu(const DeviceName& name, int64_t memory_bytes) {
  std::unique_ptr<cuda::Device> device;
  if (name.kind == DeviceName::Kind::kEmulated) {
    device = std::make_unique<cuda::EmulatedDevice>(
        cuda::EmulatedOptions{.memory_bytes = ReadMachineMemory().available_bytes});
  } else {
    device = cuda::OpenCudaDevice(name.number);
  }
  return std::make_shared<Gpu>(std::move(device), memory_bytes);
}

}  // namespace godwit::ops
