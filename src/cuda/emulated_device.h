// EmulatedDevice: a GPU on the CPU, for tests. It is slow, and its bits are those of a GPU but for
// exp, exp2, erfc and tanh.
//
// Nothing is kinder here than on a GPU. A stream does nothing before the host waits for it. Then
// other streams do what an event asks for and no more. So a forgotten event shows, and memory of
// the host that was given back too early. Each piece of memory is its own on the heap and begins as
// NaN. The order of blocks and of threads can be turned round: results that change show threads
// that disturb each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>

#include "cuda/device.h"
#include "cuda/emulated_kernels.h"

namespace godwit::cuda {

struct EmulatedOptions {
  int64_t memory_bytes = int64_t{1} << 30;
  int64_t shared_bytes = 48 << 10;
  ThreadOrder order = ThreadOrder::kAscending;
};

class EmulatedDevice : public Device {
 public:
  explicit EmulatedDevice(const EmulatedOptions& options = {});
  ~EmulatedDevice() override;

  const DeviceFacts& facts() const override { return facts_; }
  int64_t FreeBytes() override { return facts_.memory_bytes - taken_bytes_; }
  // Launches so far.
  int64_t launches() const { return launches_; }

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

 protected:
  // Forgets all work that was not done, as a device does that is lost.
  void DropWork();

 private:
  struct Work {
    std::deque<std::function<void()>> left;
    int64_t done = 0;
    int64_t given() const { return done + static_cast<int64_t>(left.size()); }
  };
  // The first `count` pieces of work of a stream.
  struct Mark {
    StreamId stream = -1;  // -1: nothing was recorded
    int64_t count = 0;
  };

  void RunUntil(StreamId stream, int64_t count);
  void RunAll();

  EmulatedOptions options_;
  DeviceFacts facts_;
  std::map<DeviceAddress, int64_t> sizes_;  // in bytes
  std::map<StreamId, Work> streams_;
  std::map<EventId, Mark> events_;
  int64_t taken_bytes_ = 0;
  int64_t launches_ = 0;
  int next_id_ = 0;
};

}  // namespace godwit::cuda
