#include "cuda/cuda_device.h"

#include <fmt/format.h>

#include <cassert>

#include "base/error.h"
#include "cuda/kernel_image.h"

namespace godwit::cuda {
namespace {

// The oldest GPUs that the kernels are compiled for: Ampere's.
constexpr int kOldestMajor = 8;

// Shared memory that a block gets without asking.
constexpr int64_t kPlainSharedBytes = 48 << 10;

void CheckImage(std::span<const std::byte> image) {
  if (!image.empty()) return;
  Throw(ErrorKind::kUnsupported,
        "this build has no kernels for GPUs: it found no compiler of CUDA when it was made");
}

}  // namespace

CudaDevice::CudaDevice(const CudaDriver& driver, int number, std::span<const std::byte> image)
    : driver_(driver) {
  CheckImage(image);
  FindGpu(number);
  LoadKernels(image);
}

CudaDevice::~CudaDevice() {
  assert(streams_.empty() && events_.empty());
  driver_.ctx_set_current(context_);
  driver_.module_unload(module_);
  driver_.device_primary_ctx_release(gpu_);
}

std::string CudaDevice::Text(DriverResult error) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver_.get_error_name(error, &name) != kDriverSuccess || name == nullptr) {
    return fmt::format("error {} of the driver", error);
  }
  if (driver_.get_error_string(error, &text) != kDriverSuccess || text == nullptr) return name;
  return fmt::format("{} ({})", text, name);
}

int CudaDevice::Attribute(int attribute) const {
  int value = 0;
  return driver_.device_get_attribute(&value, attribute, gpu_) == kDriverSuccess ? value : 0;
}

void CudaDevice::FindGpu(int number) {
  int count = 0;
  DriverResult result = driver_.init(0);
  if (result == kDriverSuccess) result = driver_.device_get_count(&count);
  if (result == kDriverNoDevice || (result == kDriverSuccess && count == 0)) {
    Throw(ErrorKind::kUnsupported, "there is no GPU: NVIDIA's driver finds none");
  }
  if (result != kDriverSuccess) {
    Throw(ErrorKind::kUnsupported, "NVIDIA's driver does not start: {}", Text(result));
  }
  if (number < 0 || number >= count) {
    Throw(ErrorKind::kUnsupported, "there is no GPU {}: NVIDIA's driver finds {}, from 0 on",
          number, count);
  }
  size_t bytes = 0;
  char name[256] = "";
  result = driver_.device_get(&gpu_, number);
  if (result == kDriverSuccess) result = driver_.device_get_name(name, sizeof(name) - 1, gpu_);
  if (result == kDriverSuccess) result = driver_.device_total_mem(&bytes, gpu_);
  if (result != kDriverSuccess) {
    Throw(ErrorKind::kUnsupported, "GPU {} tells nothing of itself: {}", number, Text(result));
  }
  facts_ = {.name = fmt::format("GPU {} ({})", number, name),
            .memory_bytes = static_cast<int64_t>(bytes),
            .shared_bytes = Attribute(kSharedBytesAttribute),
            .processors = Attribute(kProcessorsAttribute)};
  const int major = Attribute(kMajorAttribute), minor = Attribute(kMinorAttribute);
  if (major < kOldestMajor) {
    Throw(ErrorKind::kUnsupported,
          "{} is too old: expected compute capability {}.0 or later, found {}.{}", facts_.name,
          kOldestMajor, major, minor);
  }
}

void CudaDevice::LoadKernels(std::span<const std::byte> image) {
  DriverResult result = driver_.device_primary_ctx_retain(&context_, gpu_);
  if (result != kDriverSuccess) {
    Throw(ErrorKind::kUnsupported, "{} cannot be used: {}", facts_.name, Text(result));
  }
  result = driver_.ctx_set_current(context_);
  if (result == kDriverSuccess) result = driver_.module_load_data(&module_, image.data());
  if (result == kDriverSuccess) return;
  driver_.device_primary_ctx_release(gpu_);
  int version = 0;
  driver_.driver_get_version(&version);
  Throw(ErrorKind::kUnsupported,
        "{} does not take the kernels of this build: {}; its driver is of CUDA {}.{}", facts_.name,
        Text(result), version / 1000, version % 1000 / 10);
}

void CudaDevice::Enter() {
  if (!lost_.empty()) Throw(ErrorKind::kIo, "{}", lost_);
  Check(driver_.ctx_set_current(context_), "taking turns");
}

void CudaDevice::Check(DriverResult result, const char* work) {
  if (result == kDriverSuccess) return;
  lost_ = fmt::format("{} is lost: {} failed with {}", facts_.name, work, Text(result));
  Throw(ErrorKind::kIo, "{}", lost_);
}

int64_t CudaDevice::FreeBytes() {
  Enter();
  size_t free_bytes = 0, total = 0;
  Check(driver_.mem_get_info(&free_bytes, &total), "asking for free memory");
  return static_cast<int64_t>(free_bytes);
}

DeviceAddress CudaDevice::Allocate(int64_t bytes) {
  Enter();
  DriverAddress address = 0;
  const DriverResult result = driver_.mem_alloc(&address, static_cast<size_t>(bytes));
  if (result == kDriverOutOfMemory) {
    ThrowNoDeviceMemory(facts_.name, bytes, FreeBytes(), facts_.memory_bytes);
  }
  Check(result, "taking memory");
  return address;
}

// A lost GPU takes back what it still can. Results are ignored here and in other such functions.
void CudaDevice::Free(DeviceAddress address) noexcept {
  driver_.ctx_set_current(context_);
  driver_.ctx_synchronize();
  driver_.mem_free(address);
}

void* CudaDevice::AllocateHost(int64_t bytes) {
  Enter();
  void* memory = nullptr;
  const DriverResult result = driver_.mem_host_alloc(&memory, static_cast<size_t>(bytes), 0);
  if (result == kDriverOutOfMemory) ThrowNoHostMemory(facts_.name, bytes);
  Check(result, "taking memory of the machine");
  return memory;
}

void CudaDevice::FreeHost(void* memory) noexcept {
  driver_.ctx_set_current(context_);
  driver_.mem_free_host(memory);
}

StreamId CudaDevice::NewStream() {
  Enter();
  DriverStream stream = nullptr;
  Check(driver_.stream_create(&stream, kStreamNonBlocking), "making a stream");
  streams_[next_id_] = stream;
  return next_id_++;
}

void CudaDevice::EndStream(StreamId stream) noexcept {
  const auto found = streams_.find(stream);
  assert(found != streams_.end());
  driver_.ctx_set_current(context_);
  driver_.stream_synchronize(found->second);
  driver_.stream_destroy(found->second);
  streams_.erase(found);
}

EventId CudaDevice::NewEvent() {
  Enter();
  DriverEvent event = nullptr;
  Check(driver_.event_create(&event, kEventDisableTiming), "making an event");
  events_[next_id_] = event;
  return next_id_++;
}

void CudaDevice::EndEvent(EventId event) noexcept {
  const auto found = events_.find(event);
  assert(found != events_.end());
  driver_.ctx_set_current(context_);
  driver_.event_destroy(found->second);
  events_.erase(found);
}

void CudaDevice::CopyIn(StreamId stream, const void* from, DeviceAddress to, int64_t bytes) {
  Enter();
  Check(driver_.memcpy_htod_async(to, from, static_cast<size_t>(bytes), streams_.at(stream)),
        "a copy to it");
}

void CudaDevice::CopyOut(StreamId stream, DeviceAddress from, void* to, int64_t bytes) {
  Enter();
  Check(driver_.memcpy_dtoh_async(to, from, static_cast<size_t>(bytes), streams_.at(stream)),
        "a copy from it");
}

// Functions are looked up once, and told then how much shared memory they take.
DriverFunction CudaDevice::FunctionOf(const KernelCall& call) {
  const auto found = functions_.find(std::string_view(call.name));
  if (found != functions_.end()) return found->second;
  const std::string work = fmt::format("finding kernel {}", call.name);
  DriverFunction function = nullptr;
  Check(
      driver_.module_get_function(&function, module_, fmt::format("godwit_{}", call.name).c_str()),
      work.c_str());
  if (call.shared_bytes > kPlainSharedBytes) {
    Check(driver_.func_set_attribute(function, kFunctionSharedBytesAttribute,
                                     static_cast<int>(call.shared_bytes)),
          work.c_str());
  }
  return functions_[call.name] = function;
}

void CudaDevice::Launch(StreamId stream, const KernelCall& call) {
  CheckLaunch(facts_, call);
  Enter();
  const DriverFunction function = FunctionOf(call);
  void* args[] = {const_cast<void*>(call.args)};
  const DriverResult result = driver_.launch_kernel(
      function, static_cast<unsigned>(call.grid.x), static_cast<unsigned>(call.grid.y),
      static_cast<unsigned>(call.grid.z), static_cast<unsigned>(call.threads), 1, 1,
      static_cast<unsigned>(call.shared_bytes), streams_.at(stream), args, nullptr);
  if (result != kDriverSuccess) Check(result, fmt::format("kernel {}", call.name).c_str());
}

void CudaDevice::Record(StreamId stream, EventId event) {
  Enter();
  Check(driver_.event_record(events_.at(event), streams_.at(stream)), "recording an event");
}

void CudaDevice::Wait(StreamId stream, EventId event) {
  Enter();
  Check(driver_.stream_wait_event(streams_.at(stream), events_.at(event), 0),
        "waiting for an event");
}

void CudaDevice::Await(EventId event) {
  Enter();
  Check(driver_.event_synchronize(events_.at(event)), "the work before an event");
}

void CudaDevice::Synchronize(StreamId stream) {
  Enter();
  Check(driver_.stream_synchronize(streams_.at(stream)), "a stream's work");
}

std::unique_ptr<Device> OpenCudaDevice(int number) {
  CheckImage(KernelImage());  // more to the point than a missing driver
  return std::make_unique<CudaDevice>(LoadedCudaDriver(), number, KernelImage());
}

}  // namespace godwit::cuda
