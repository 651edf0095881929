#include "cuda/emulated_device.h"

#include <cassert>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "base/error.h"

namespace godwit::cuda {
namespace {

constexpr std::align_val_t kAlignment{256};

void* HostAddress(DeviceAddress address) { return reinterpret_cast<void*>(address); }

}  // namespace

EmulatedDevice::EmulatedDevice(const EmulatedOptions& options)
    : options_(options),
      facts_{.name = "the emulated GPU",
             .memory_bytes = options.memory_bytes,
             .shared_bytes = options.shared_bytes,
             .processors = 1} {}

EmulatedDevice::~EmulatedDevice() { assert(sizes_.empty() && streams_.empty()); }

DeviceAddress EmulatedDevice::Allocate(int64_t bytes) {
  if (bytes > FreeBytes()) {
    ThrowNoDeviceMemory(facts_.name, bytes, FreeBytes(), facts_.memory_bytes);
  }
  void* const memory = ::operator new(static_cast<size_t>(bytes), kAlignment);
  std::memset(memory, 0xff, static_cast<size_t>(bytes));
  const auto address = reinterpret_cast<DeviceAddress>(memory);
  sizes_[address] = bytes;
  taken_bytes_ += bytes;
  return address;
}

void EmulatedDevice::Free(DeviceAddress address) noexcept {
  RunAll();
  const auto found = sizes_.find(address);
  assert(found != sizes_.end());
  taken_bytes_ -= found->second;
  sizes_.erase(found);
  ::operator delete(HostAddress(address), kAlignment);
}

void* EmulatedDevice::AllocateHost(int64_t bytes) {
  void* const memory = ::operator new(static_cast<size_t>(bytes), kAlignment, std::nothrow);
  if (memory == nullptr) ThrowNoHostMemory(facts_.name, bytes);
  std::memset(memory, 0xff, static_cast<size_t>(bytes));
  return memory;
}

void EmulatedDevice::FreeHost(void* memory) noexcept { ::operator delete(memory, kAlignment); }

StreamId EmulatedDevice::NewStream() {
  streams_[next_id_];
  return next_id_++;
}

void EmulatedDevice::EndStream(StreamId stream) noexcept {
  RunUntil(stream, streams_.at(stream).given());
  streams_.erase(stream);
}

EventId EmulatedDevice::NewEvent() {
  events_[next_id_];
  return next_id_++;
}

void EmulatedDevice::EndEvent(EventId event) noexcept { events_.erase(event); }

void EmulatedDevice::CopyIn(StreamId stream, const void* from, DeviceAddress to, int64_t bytes) {
  streams_.at(stream).left.emplace_back(
      [=] { std::memcpy(HostAddress(to), from, static_cast<size_t>(bytes)); });
}

void EmulatedDevice::CopyOut(StreamId stream, DeviceAddress from, void* to, int64_t bytes) {
  streams_.at(stream).left.emplace_back(
      [=] { std::memcpy(to, HostAddress(from), static_cast<size_t>(bytes)); });
}

void EmulatedDevice::Launch(StreamId stream, const KernelCall& call) {
  CheckLaunch(facts_, call);
  const EmulatedKernel* const kernel = FindEmulatedKernel(call.name);
  assert(kernel != nullptr && kernel->threads == call.threads &&
         kernel->shared_bytes == call.shared_bytes && kernel->args_bytes == call.args_bytes);
  const auto* const bytes = static_cast<const std::byte*>(call.args);
  std::vector<std::byte> args(bytes, bytes + call.args_bytes);
  const Grid grid = call.grid;
  const ThreadOrder order = options_.order;
  streams_.at(stream).left.emplace_back(
      [kernel, args = std::move(args), grid, order] { kernel->run(args.data(), grid, order); });
  ++launches_;
}

void EmulatedDevice::Record(StreamId stream, EventId event) {
  events_.at(event) = {stream, streams_.at(stream).given()};
}

void EmulatedDevice::Wait(StreamId stream, EventId event) {
  const Mark mark = events_.at(event);
  if (mark.stream < 0) return;
  streams_.at(stream).left.emplace_back([this, mark] { RunUntil(mark.stream, mark.count); });
}

void EmulatedDevice::Await(EventId event) {
  const Mark mark = events_.at(event);
  if (mark.stream >= 0) RunUntil(mark.stream, mark.count);
}

void EmulatedDevice::Synchronize(StreamId stream) { RunUntil(stream, streams_.at(stream).given()); }

// A stream that has ended had done all of its work.
void EmulatedDevice::RunUntil(StreamId stream, int64_t count) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  Work& work = found->second;
  while (work.done < count) {
    const std::function<void()> next = std::move(work.left.front());
    work.left.pop_front();
    ++work.done;
    next();
  }
}

void EmulatedDevice::DropWork() {
  for (auto& [id, work] : streams_) work.left.clear();
}

void EmulatedDevice::RunAll() {
  for (auto& [id, work] : streams_) RunUntil(id, work.given());
}

}  // namespace godwit::cuda
