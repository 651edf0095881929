// CudaDevice: a GPU by NVIDIA's driver.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "cuda/cuda_driver.h"
#include "cuda/device.h"

namespace godwit::cuda {

class CudaDevice : public Device {
 public:
  // number: of the GPU among those that the driver shows. image: the kernels (KernelImage).
  // Throws Error(kUnsupported) if there is no such GPU, or it cannot run the kernels.
  CudaDevice(const CudaDriver& driver, int number, std::span<const std::byte> image);
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const DeviceFacts& facts() const override { return facts_; }
  int64_t FreeBytes() override;
  DeviceAddress Allocate(int64_t bytes) override;
  void Free(DeviceAddress address) noexcept override;
  void* AllocateHost(int64_t bytes) override;
  void FreeHost(void* memory) noexcept override;
  StreamId NewStream() override;
  void EndStream(StreamId stream) noexcept override;
  EventId NewEvent() override;
  void EndEvent(EventId event) noexcept override;
  void CopyIn(StreamId stream, const void* from, DeviceAddress to, int64_t bytes) override;
  void CopyOut(StreamId stream, DeviceAddress from, void* to, int64_t bytes) override;
  void Launch(StreamId stream, const KernelCall& call) override;
  void Record(StreamId stream, EventId event) override;
  void Wait(StreamId stream, EventId event) override;
  void Await(EventId event) override;
  void Synchronize(StreamId stream) override;

 private:
  void FindGpu(int number);
  void LoadKernels(std::span<const std::byte> image);
  int Attribute(int attribute) const;
  std::string Text(DriverResult error) const;
  // Makes the GPU that of the calling thread. Throws if it was lost.
  void Enter();
  // Throws Error(kIo) for a failure of `work`, after which the GPU counts as lost.
  void Check(DriverResult result, const char* work);
  DriverFunction FunctionOf(const KernelCall& call);

  const CudaDriver& driver_;
  DriverDevice gpu_ = 0;
  DriverContext context_ = nullptr;
  DriverModule module_ = nullptr;
  DeviceFacts facts_;
  std::string lost_;  // why, or empty
  std::map<std::string, DriverFunction, std::less<>> functions_;
  std::map<StreamId, DriverStream> streams_;
  std::map<EventId, DriverEvent> events_;
  int next_id_ = 0;
};

// GPU `number` with the driver and the kernels of this program. Throws Error(kUnsupported) in one
// sentence where there is none, or the build has no kernels.
std::unique_ptr<Device> OpenCudaDevice(int number);

}  // namespace godwit::cuda
