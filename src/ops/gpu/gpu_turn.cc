#include "ops/gpu/gpu_turn.h"

#include "base/error.h"

namespace godwit::ops {
namespace {

// Calls copy(host row, device address, bytes) for the whole matrix at once if its rows lie as the
// device's, else for each row.
template <class T, class U, class Copy>
void CopyRowsOf(MatrixView<T> host, cuda::DeviceMatrix<U> device, const Copy& copy) {
  assert(host.rows == device.rows && host.cols == device.cols);
  if (host.rows == 0) return;
  constexpr auto kBytes = static_cast<int64_t>(sizeof(float));
  const auto address = [&](int64_t row) {
    return reinterpret_cast<cuda::DeviceAddress>(device.data + row * device.stride);
  };
  if (host.stride == device.stride) {
    copy(host.data, address(0), ((host.rows - 1) * host.stride + host.cols) * kBytes);
    return;
  }
  for (int64_t row = 0; row < host.rows; ++row) {
    copy(host.Row(row), address(row), host.cols * kBytes);
  }
}

}  // namespace

GpuTurn::GpuTurn(const Exec& exec, Gpu& gpu, int64_t bytes, int64_t host_bytes)
    : exec_(exec), gpu_(gpu), lock_(gpu.mutex()) {
  gpu.ReserveScratch(bytes);
  gpu.ReserveHost(host_bytes);
  scratch_ = GpuScratch(gpu.scratch());
  host_ = GpuScratch(gpu.host());
}

GpuTurn::~GpuTurn() {
  if (!copies_) return;
  try {
    copies().Synchronize();
    stream().Synchronize();
  } catch (const Error&) {
    // A lost device does nothing more. It says so at the next call, too.
  }
}

void GpuTurn::CopyIn(MatrixView<const float> from, cuda::DeviceMatrix<float> to) {
  copies_ = true;
  CopyRowsOf(from, to, [&](const float* row, cuda::DeviceAddress address, int64_t bytes) {
    stream().device().CopyIn(stream().id(), row, address, bytes);
  });
}

void GpuTurn::CopyOut(cuda::DeviceMatrix<const float> from, MatrixView<float> to) {
  copies_ = true;
  CopyRowsOf(to, from, [&](float* row, cuda::DeviceAddress address, int64_t bytes) {
    stream().device().CopyOut(stream().id(), address, row, bytes);
  });
}

void GpuTurn::CopyInBytes(const cuda::Stream& stream, const void* from, void* to, int64_t bytes) {
  copies_ = true;
  stream.device().CopyIn(stream.id(), from, reinterpret_cast<cuda::DeviceAddress>(to), bytes);
}

void GpuTurn::ThrowIfCancelled() const {
  if (exec_.cancel != nullptr) exec_.cancel->ThrowIfCancelled();
}

void GpuTurn::Wait() {
  ThrowIfCancelled();
  stream().Synchronize();
  copies_ = false;
}

void GpuTurn::Await(const cuda::Event& event) {
  ThrowIfCancelled();
  event.Await();
}

}  // namespace godwit::ops
