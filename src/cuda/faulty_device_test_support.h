// For tests only: an emulated GPU that fails, or is watched, at a chosen call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/error.h"
#include "cuda/emulated_device.h"

namespace godwit::cuda {

// The faults of a FaultyDevice, which a test sets while others own the device.
struct DeviceScript {
  int64_t calls = 0;  // of copies, launches and waits so far
  // Copies so far whose memory of the host was not page-locked.
  int64_t pageable_copies = 0;
  int64_t lost_at = -1;  // the call at which the device is lost; -1: none
  bool is_full = false;  // whether it refuses memory
  // Bytes of copies to the device and back so far.
  int64_t in_bytes = 0, out_bytes = 0;
  std::function<void(int64_t call)> on_call = {};
};

class FaultyDevice : public EmulatedDevice {
 public:
  explicit FaultyDevice(std::shared_ptr<DeviceScript> script, const EmulatedOptions& options = {})
      : EmulatedDevice(options), script_(std::move(script)) {}

  DeviceAddress Allocate(int64_t bytes) override {
    if (script_->is_full) ThrowNoDeviceMemory(facts().name, bytes, 0, facts().memory_bytes);
    return EmulatedDevice::Allocate(bytes);
  }
  void* AllocateHost(int64_t bytes) override {
    auto* const memory = static_cast<std::byte*>(EmulatedDevice::AllocateHost(bytes));
    page_locked_[memory] = memory + bytes;
    return memory;
  }
  void FreeHost(void* memory) noexcept override {
    page_locked_.erase(static_cast<std::byte*>(memory));
    EmulatedDevice::FreeHost(memory);
  }
  void CopyIn(StreamId stream, const void* from, DeviceAddress to, int64_t bytes) override {
    Count();
    CountPageable(from, bytes);
    script_->in_bytes += bytes;
    EmulatedDevice::CopyIn(stream, from, to, bytes);
  }
  void CopyOut(StreamId stream, DeviceAddress from, void* to, int64_t bytes) override {
    Count();
    CountPageable(to, bytes);
    script_->out_bytes += bytes;
    EmulatedDevice::CopyOut(stream, from, to, bytes);
  }
  void Launch(StreamId stream, const KernelCall& call) override {
    Count();
    EmulatedDevice::Launch(stream, call);
  }
  void Await(EventId event) override {
    Count();
    EmulatedDevice::Await(event);
  }
  void Synchronize(StreamId stream) override {
    Count();
    EmulatedDevice::Synchronize(stream);
  }

 private:
  void CountPageable(const void* memory, int64_t bytes) {
    const auto* const begin = static_cast<const std::byte*>(memory);
    for (const auto& [first, end] : page_locked_) {
      if (first <= begin && begin + bytes <= end) return;
    }
    ++script_->pageable_copies;
  }
  void Count() {
    const int64_t call = script_->calls++;
    if (script_->on_call) script_->on_call(call);
    if (script_->lost_at < 0 || call < script_->lost_at) return;
    DropWork();
    Throw(ErrorKind::kIo, "{} is lost: a test took it", facts().name);
  }

  std::shared_ptr<DeviceScript> script_;
  std::map<const std::byte*, const std::byte*> page_locked_;  // beginnings and ends
};

}  // namespace godwit::cuda
