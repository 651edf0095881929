// For tests only: an emulated GPU that fails, or is watched, at a chosen call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "cuda/emulated_device.h"

namespace godwit::cuda {

// The faults of a FaultyDevice, which a test sets while others own the device.
struct DeviceScript {
  int64_t calls = 0;     // of copies, launches and waits so far
  int64_t lost_at = -1;  // the call at which the device is lost; -1: none
  bool is_full = false;  // whether it refuses memory
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
  void CopyIn(StreamId stream, const void* from, DeviceAddress to, int64_t bytes) override {
    Count();
    EmulatedDevice::CopyIn(stream, from, to, bytes);
  }
  void CopyOut(StreamId stream, DeviceAddress from, void* to, int64_t bytes) override {
    Count();
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
  void Count() {
    const int64_t call = script_->calls++;
    if (script_->on_call) script_->on_call(call);
    if (script_->lost_at < 0 || call < script_->lost_at) return;
    DropWork();
    Throw(ErrorKind::kIo, "{} is lost: a test took it", facts().name);
  }

  std::shared_ptr<DeviceScript> script_;
};

}  // namespace godwit::cuda
