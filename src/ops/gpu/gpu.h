// Gpu: a GPU as rooms above ops know it: a place for weights, and work for one step at a time.
//
// cuda/device.h has the device below it, and its errors: Error(kMemory) if something does not fit,
// and Error(kIo) once the device is lost.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace godwit::cuda {
class Device;
class DeviceMemory;
class HostMemory;
class Stream;
}  // namespace godwit::cuda

namespace godwit::ops {

// Where layers compute, as LoadOptions::device spells it.
struct DeviceName {
  enum class Kind { kCuda, kEmulated };
  Kind kind = Kind::kCuda;
  int number = 0;  // of the GPU among those that the driver shows
};
// "cuda", "cuda:N" or "emulated"; nullopt for "cpu" and for nothing. Throws Error(kInput) for
// anything else.
std::optional<DeviceName> ParseDevice(std::string_view name);

class Gpu {
 public:
  // memory_bytes: the most that weights and scratch memory take of the device's; 0: what is free
  // there, but a sixteenth for the driver and others. Throws Error(kInput) for less than 0, and
  // Error(kMemory) for more than the device has.
  Gpu(std::unique_ptr<cuda::Device> device, int64_t memory_bytes);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const std::string& name() const;  // "GPU 0 (NVIDIA H100)"
  int64_t total_bytes() const;      // of the device
  int64_t limit_bytes() const { return limit_bytes_; }
  int64_t taken_bytes() const;  // of those, now

  // The rest is for the operations of this folder.

  const cuda::Stream& stream() const { return *stream_; }
  // Takes memory for weights, which stays taken. bytes > 0.
  cuda::DeviceMemory Take(int64_t bytes);
  // Lets scratch memory have so many bytes at least.
  void ReserveScratch(int64_t bytes);
  const cuda::DeviceMemory& scratch() const { return *scratch_; }
  // Work beside that of stream(): copies of what it needs next.
  const cuda::Stream& copies() const { return *copies_; }
  // The same of page-locked memory of the host, through which copies go.
  void ReserveHost(int64_t bytes);
  const cuda::HostMemory& host() const { return *host_; }
  // Held by the step that uses the streams and the scratch memory.
  std::mutex& mutex() { return mutex_; }

 private:
  void RequireRoom(int64_t bytes) const;

  std::unique_ptr<cuda::Device> device_;
  std::unique_ptr<cuda::Stream> stream_, copies_;
  std::unique_ptr<cuda::DeviceMemory> scratch_;
  std::unique_ptr<cuda::HostMemory> host_;
  int64_t limit_bytes_ = 0;
  int64_t weight_bytes_ = 0;
  std::mutex mutex_;
};

// Opens the device. Throws Error(kUnsupported) in one sentence where there is no driver, no such
// GPU, or the build has no kernels; and what Gpu throws.
std::shared_ptr<Gpu> OpenGpu(const DeviceName& name, int64_t memory_bytes);

}  // namespace godwit::ops
