// Device: the memory of a GPU and what it is told to do.
//
// Two are there: CudaDevice, and EmulatedDevice, which runs the same kernels on the CPU. Work is
// put into streams. A stream does its work in order; streams wait for each other by events alone.
// A host's memory that a copy reads or writes must stay as it is until its stream has got there.
//
// Every function may throw Error: kMemory if something does not fit, with both sizes, and kIo if
// the device is lost or fails. After a loss every further call throws the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace godwit::cuda {

struct DeviceFacts {
  std::string name;
  int64_t memory_bytes = 0;
  int64_t shared_bytes = 0;  // that a block may have
  int processors = 0;
};

// Blocks of threads in three dimensions.
struct Grid {
  int64_t x = 1;
  int64_t y = 1;
  int64_t z = 1;
  bool empty() const { return x == 0 || y == 0 || z == 0; }
};
// The largest grid of every device.
inline constexpr Grid kMaxGrid = {.x = INT32_MAX, .y = 65535, .z = 65535};

struct KernelCall {
  const char* name;
  int threads;
  int64_t shared_bytes;
  const void* args;  // plain data, read before the call returns
  int64_t args_bytes;
  Grid grid;  // not empty
};

// A place in a device's memory. Only kernels and copies look into it.
using DeviceAddress = uint64_t;

using StreamId = int;
using EventId = int;

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceFacts& facts() const = 0;
  virtual int64_t FreeBytes() = 0;

  // bytes > 0. The memory is aligned to 256 bytes and holds anything.
  virtual DeviceAddress Allocate(int64_t bytes) = 0;
  // Waits for all work of the device first.
  virtual void Free(DeviceAddress address) noexcept = 0;

  // Memory of the host that copies read and write without the driver's help, page-locked and
  // aligned to 64 bytes. bytes > 0. Throws Error(kMemory) if the host has none.
  virtual void* AllocateHost(int64_t bytes) = 0;
  // No copy uses it any more.
  virtual void FreeHost(void* memory) noexcept = 0;

  virtual StreamId NewStream() = 0;
  virtual void EndStream(StreamId stream) noexcept = 0;  // waits for its work
  virtual EventId NewEvent() = 0;
  virtual void EndEvent(EventId event) noexcept = 0;

  virtual void CopyIn(StreamId stream, const void* from, DeviceAddress to, int64_t bytes) = 0;
  virtual void CopyOut(StreamId stream, DeviceAddress from, void* to, int64_t bytes) = 0;
  virtual void Launch(StreamId stream, const KernelCall& call) = 0;
  // The event stands for the work that the stream has been given so far.
  virtual void Record(StreamId stream, EventId event) = 0;
  // Work that the stream is given from now on begins after what the event stands for.
  virtual void Wait(StreamId stream, EventId event) = 0;
  // Returns when the work that the event stands for is done.
  virtual void Await(EventId event) = 0;
  // Returns when all work of the stream is done.
  virtual void Synchronize(StreamId stream) = 0;
};

// Memory of a device. Move-only.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(Device& device, int64_t bytes)
      : device_(&device), address_(bytes > 0 ? device.Allocate(bytes) : 0), bytes_(bytes) {}
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DeviceMemory() {
    if (address_ != 0) device_->Free(address_);
  }

  DeviceAddress address() const { return address_; }
  int64_t bytes() const { return bytes_; }
  // For arguments of kernels: the host must not look there.
  template <class T>
  T* As() const {
    return reinterpret_cast<T*>(address_);
  }

 private:
  Device* device_ = nullptr;
  DeviceAddress address_ = 0;
  int64_t bytes_ = 0;
};

// Memory of the host for copies (Device::AllocateHost). Move-only.
class HostMemory {
 public:
  HostMemory() = default;
  HostMemory(Device& device, int64_t bytes)
      : device_(&device),
        data_(bytes > 0 ? static_cast<std::byte*>(device.AllocateHost(bytes)) : nullptr),
        bytes_(bytes) {}
  HostMemory(HostMemory&& other) noexcept { *this = std::move(other); }
  HostMemory& operator=(HostMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~HostMemory() {
    if (data_ != nullptr) device_->FreeHost(data_);
  }

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  Device* device_ = nullptr;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

// A stream of a device, which outlives it. Ended with its work done.
class Stream {
 public:
  explicit Stream(Device& device) : device_(device), id_(device.NewStream()) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { device_.EndStream(id_); }

  Device& device() const { return device_; }
  StreamId id() const { return id_; }

  void CopyIn(const void* from, const DeviceMemory& to, int64_t bytes) const {
    if (bytes > 0) device_.CopyIn(id_, from, to.address(), bytes);
  }
  void CopyOut(const DeviceMemory& from, void* to, int64_t bytes) const {
    if (bytes > 0) device_.CopyOut(id_, from.address(), to, bytes);
  }
  void Synchronize() const { device_.Synchronize(id_); }

  // Runs a kernel on a grid, which may be empty.
  template <class Kernel>
  void Launch(const Grid& grid, const typename Kernel::Args& args) const {
    static_assert(std::is_trivially_copyable_v<typename Kernel::Args>);
    if (grid.empty()) return;
    device_.Launch(id_, {.name = Kernel::kName,
                         .threads = Kernel::kThreads,
                         .shared_bytes = std::is_empty_v<typename Kernel::Shared>
                                             ? 0
                                             : int64_t{sizeof(typename Kernel::Shared)},
                         .args = &args,
                         .args_bytes = sizeof(args),
                         .grid = grid});
  }

 private:
  Device& device_;
  StreamId id_;
};

// An event of a device, which outlives it.
class Event {
 public:
  explicit Event(Device& device) : device_(device), id_(device.NewEvent()) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { device_.EndEvent(id_); }

  void RecordIn(const Stream& stream) const { device_.Record(stream.id(), id_); }
  void LetWait(const Stream& stream) const { device_.Wait(stream.id(), id_); }
  void Await() const { device_.Await(id_); }

 private:
  Device& device_;
  EventId id_;
};

// Throws Error(kMemory): "GPU 0 (NVIDIA H100) lacks memory: 8.0 GiB are needed, and 3.2 GiB of 79.0
// GiB are free".
[[noreturn]] void ThrowNoDeviceMemory(const std::string& name, int64_t needed_bytes,
                                      int64_t free_bytes, int64_t all_bytes);
// Throws Error(kMemory) for memory of the host that is to be page-locked.
[[noreturn]] void ThrowNoHostMemory(const std::string& name, int64_t needed_bytes);
// Throws Error(kUnsupported) if a kernel does not fit: its shared memory, or its grid.
void CheckLaunch(const DeviceFacts& facts, const KernelCall& call);

}  // namespace godwit::cuda
