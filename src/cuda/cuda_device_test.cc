// The launch code against made-up GPUs: there may be no real one.
#include "cuda/cuda_device.h"

#include <functional>

#include "base/error.h"
#include "cuda/fake_driver_test_support.h"
#include "cuda/kernel_image.h"
#include "cuda/ops/attention.h"
#include "cuda/ops/norm.h"
#include "cuda/test_support.h"

namespace godwit::cuda::cuda_device_test {
namespace {

constexpr std::byte kImage[4] = {};

const CudaDriver& Driver() {
  static const CudaDriver driver = fake::Table();
  return driver;
}

// The kind and the message of what `work` throws.
struct Thrown {
  ErrorKind kind = ErrorKind::kInput;
  std::string message = "nothing";
};
Thrown Catch(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  return {};
}

// A GPU that cannot be used, and why.
struct Unusable {
  const char* what;
  std::function<void(FakeGpu&)> make;
  int number;
  std::string message;
};

const Unusable kUnusable[] = {
    {"none",
     [](FakeGpu& gpu) {
       gpu.failures["init"] = {0, kDriverNoDevice};
     },
     0, "there is no GPU: NVIDIA's driver finds none"},
    {"none counted", [](FakeGpu& gpu) { gpu.count = 0; }, 0,
     "there is no GPU: NVIDIA's driver finds none"},
    {"a driver without its kernel module",
     [](FakeGpu& gpu) {
       gpu.failures["init"] = {0, 803};
     },
     0, "NVIDIA's driver does not start: error 803 of the driver"},
    {"a number behind the last", [](FakeGpu& gpu) { gpu.count = 2; }, 2,
     "there is no GPU 2: NVIDIA's driver finds 2, from 0 on"},
    {"a number below 0", [](FakeGpu&) {}, -1,
     "there is no GPU -1: NVIDIA's driver finds 1, from 0 on"},
    {"an old GPU", [](FakeGpu& gpu) { gpu.major = 7, gpu.minor = 5; }, 0,
     "GPU 0 (NVIDIA Test) is too old: expected compute capability 8.0 or later, found 7.5"},
    {"a GPU in exclusive use of another process",
     [](FakeGpu& gpu) {
       gpu.count = 2;
       gpu.failures["device_primary_ctx_retain"] = {0, 46};
     },
     1, "GPU 1 (NVIDIA Test) cannot be used: error 46 of the driver"},
    {"a driver that is older than the kernels",
     [](FakeGpu& gpu) {
       gpu.failures["module_load_data"] = {0, kFakeNoBinary};
     },
     0,
     "GPU 0 (NVIDIA Test) does not take the kernels of this build: no kernel image "
     "(CUDA_ERROR_NO_BINARY_FOR_GPU); its driver is of CUDA 12.8"},
};

TEST(CudaDevice, RefusesGpusThatCannotBeUsed) {
  for (const Unusable& unusable : kUnusable) {
    FakeGpu gpu;
    unusable.make(gpu);
    const Thrown thrown =
        Catch([&] { const CudaDevice device(Driver(), unusable.number, kImage); });
    EXPECT_EQ(thrown.message, unusable.message) << unusable.what;
    EXPECT_EQ(thrown.kind, ErrorKind::kUnsupported) << unusable.what;
    EXPECT_TRUE(gpu.AllGivenBack()) << unusable.what;
  }
}

TEST(CudaDevice, RefusesABuildWithoutKernels) {
  FakeGpu gpu;
  const std::string expected =
      "this build has no kernels for GPUs: it found no compiler of CUDA when it was made";
  EXPECT_EQ(Catch([] { const CudaDevice device(Driver(), 0, {}); }).message, expected);
  if (KernelImage().empty()) {
    EXPECT_EQ(Catch([] { OpenCudaDevice(0); }).message, expected);
  }
}

TEST(LoadCudaDriver, SaysWhatIsMissing) {
  const Thrown none = Catch([] { LoadCudaDriver("libgodwit-none.so.1"); });
  EXPECT_EQ(none.kind, ErrorKind::kUnsupported);
  EXPECT_TRUE(none.message.starts_with(
      "GPUs need libgodwit-none.so.1, which NVIDIA's driver brings: libgodwit-none.so.1: "))
      << none.message;
  EXPECT_EQ(Catch([] { LoadCudaDriver("libc.so.6"); }).message,
            "libc.so.6 has no cuInit: expected NVIDIA's driver of CUDA 12 or later");
}

// The sum of two numbers, by way of two streams.
float SumOnDevice(Device& device) {
  const float one = 1, two = 2;
  float sum = 0;
  const Stream copies(device), work(device);
  const Event ready(device);
  const DeviceMemory x(device, 4), y(device, 4);
  copies.CopyIn(&one, x, 4);
  copies.CopyIn(&two, y, 4);
  ready.RecordIn(copies);
  ready.LetWait(work);
  AddRows(work, {y.As<float>(), 1, 1, 1}, {x.As<float>(), 1, 1, 1});
  work.CopyOut(x, &sum, 4);
  work.Synchronize();
  return sum;
}

TEST(CudaDevice, RunsKernelsAndGivesAllBack) {
  FakeGpu gpu;
  {
    CudaDevice device(Driver(), 0, kImage);
    EXPECT_EQ(device.facts().name, "GPU 0 (NVIDIA Test)");
    EXPECT_EQ(device.facts().processors, 132);
    EXPECT_EQ(device.FreeBytes(), int64_t{1} << 30);
    EXPECT_EQ(SumOnDevice(device), 3);
    EXPECT_EQ(SumOnDevice(device), 3);
    EXPECT_EQ(gpu.calls["module_get_function"], 1);  // looked up once
    EXPECT_EQ(gpu.calls["event_record"], 2);
    EXPECT_EQ(gpu.calls["stream_wait_event"], 2);
  }
  EXPECT_TRUE(gpu.AllGivenBack());
}

TEST(CudaDevice, MissingMemoryIsToldAndTheGpuGoesOn) {
  FakeGpu gpu;
  gpu.memory_bytes = 3 << 20;
  CudaDevice device(Driver(), 0, kImage);
  const DeviceMemory memory(device, 1 << 20);
  const Thrown thrown = Catch([&] { const DeviceMemory more(device, 5 << 20); });
  EXPECT_EQ(thrown.kind, ErrorKind::kMemory);
  EXPECT_EQ(
      thrown.message,
      "GPU 0 (NVIDIA Test) lacks memory: 5.0 MiB are needed, and 2.0 MiB of 3.0 MiB are free");
  EXPECT_EQ(SumOnDevice(device), 3);
}

TEST(CudaDevice, CopiesThroughMemoryOfTheHost) {
  FakeGpu gpu;
  {
    CudaDevice device(Driver(), 0, kImage);
    {
      const Stream stream(device);
      const Event copied(device);
      const HostMemory here(device, 8);
      const DeviceMemory there(device, 8);
      EXPECT_EQ(gpu.host_blocks, 1);
      std::memcpy(here.data(), "godwit!", 8);
      stream.CopyIn(here.data(), there, 8);
      copied.RecordIn(stream);
      copied.Await();
      EXPECT_EQ(gpu.calls["event_synchronize"], 1);
      char back[8] = "";
      stream.CopyOut(there, back, 8);
      stream.Synchronize();
      EXPECT_STREQ(back, "godwit!");
    }
    gpu.failures["mem_host_alloc"] = {0, kDriverOutOfMemory};
    const Thrown thrown = Catch([&] { const HostMemory more(device, 5 << 20); });
    EXPECT_EQ(thrown.kind, ErrorKind::kMemory);
    EXPECT_EQ(thrown.message,
              "this machine lacks memory from which GPU 0 (NVIDIA Test) copies: 5.0 MiB are "
              "needed, which stay where they are");
    EXPECT_EQ(SumOnDevice(device), 3);
    gpu.failures["mem_host_alloc"] = {0, kFakeLost};
    EXPECT_EQ(Catch([&] { const HostMemory more(device, 8); }).kind, ErrorKind::kIo);
    EXPECT_EQ(Catch([&] { SumOnDevice(device); }).kind, ErrorKind::kIo);
  }
  EXPECT_TRUE(gpu.AllGivenBack());
}

TEST(CudaDevice, RefusesKernelsThatNeedMoreSharedMemory) {
  FakeGpu gpu;
  gpu.shared_bytes = 16;
  CudaDevice device(Driver(), 0, kImage);
  const Stream stream(device);
  const Thrown thrown = Catch([&] {
    RmsNormRows(stream, {nullptr, 1, 1, 1}, nullptr, 0, DeviceMatrix<float>{nullptr, 1, 1, 1});
  });
  EXPECT_EQ(thrown.kind, ErrorKind::kUnsupported);
  EXPECT_EQ(thrown.message,
            "GPU 0 (NVIDIA Test) has too little shared memory: kernel RmsNorm needs 32 B of a "
            "block, found 16 B");
}

TEST(CudaDevice, AsksForMoreSharedMemoryThanBlocksHave) {
  FakeGpu gpu;
  CudaDevice device(Driver(), 0, kImage);
  const Stream stream(device);
  const KernelCall call = {.name = "Add",
                           .threads = Add::kThreads,
                           .shared_bytes = 64 << 10,
                           .args = nullptr,
                           .args_bytes = 0,
                           .grid = {}};
  Catch([&] { device.Launch(stream.id(), call); });  // the fake GPU's kernel takes none
  EXPECT_EQ(gpu.shared_asked["Add"], 64 << 10);
}

// A step of work that fails, and how it is told.
struct Failure {
  const char* function;
  int call;
  std::string work;
};
const Failure kFailures[] = {
    {"mem_alloc", 1, "taking memory"},
    {"stream_create", 1, "making a stream"},
    {"event_create", 0, "making an event"},
    {"memcpy_htod_async", 1, "a copy to it"},
    {"event_record", 0, "recording an event"},
    {"stream_wait_event", 0, "waiting for an event"},
    {"module_get_function", 0, "finding kernel Add"},
    {"launch_kernel", 0, "kernel Add"},
    {"memcpy_dtoh_async", 0, "a copy from it"},
    {"stream_synchronize", 0, "a stream's work"},
    {"ctx_set_current", 3, "taking turns"},
};

TEST(CudaDevice, ALostGpuStaysLost) {
  for (const Failure& failure : kFailures) {
    FakeGpu gpu;
    {
      CudaDevice device(Driver(), 0, kImage);
      gpu.failures[failure.function] = {gpu.calls[failure.function] + failure.call, kFakeLost};
      const std::string expected =
          "GPU 0 (NVIDIA Test) is lost: " + failure.work +
          " failed with uncorrectable ECC error encountered (CUDA_ERROR_ECC_UNCORRECTABLE)";
      for (int i = 0; i < 2; ++i) {
        const Thrown thrown = Catch([&] { SumOnDevice(device); });
        EXPECT_EQ(thrown.kind, ErrorKind::kIo) << failure.function;
        EXPECT_EQ(thrown.message, expected) << failure.function;
        gpu.failures.clear();  // the driver would go on, but memory may be wrong
      }
    }
    EXPECT_EQ(gpu.streams + gpu.events, 0) << failure.function;
    EXPECT_TRUE(gpu.AllGivenBack()) << failure.function;
  }
}

TEST(KernelImage, IsAFatBinary) {
  if (KernelImage().empty()) GTEST_SKIP() << "this build found no compiler of CUDA";
  constexpr uint32_t kMagic = 0xba55ed50;
  uint32_t magic = 0;
  ASSERT_GT(KernelImage().size(), 1000u);
  std::memcpy(&magic, KernelImage().data(), sizeof(magic));
  EXPECT_EQ(magic, kMagic);
}

}  // namespace
}  // namespace godwit::cuda::cuda_device_test
