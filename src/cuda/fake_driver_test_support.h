// A table of NVIDIA's driver that stands for GPUs which tests make up. Kernels run on the CPU. Only
// *_test.cc files include it.
#pragma once

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include "cuda/cuda_driver.h"
#include "cuda/emulated_kernels.h"

namespace godwit::cuda {

// A made-up GPU and its driver's answers. Exactly one is in use at a time.
struct FakeGpu {
  int count = 1;
  std::string name = "NVIDIA Test";
  int major = 9;
  int minor = 0;
  int shared_bytes = 100 << 10;
  size_t memory_bytes = size_t{1} << 30;
  int driver_version = 12080;
  // Functions that fail from their n-th call on, the first one being 0: name, result.
  std::map<std::string, std::pair<int, DriverResult>, std::less<>> failures;

  size_t taken_bytes = 0;
  std::map<DriverAddress, size_t> sizes = {};
  std::map<std::string, int, std::less<>> calls = {};
  std::map<std::string, int> shared_asked = {};  // of kernels
  int contexts = 0, modules = 0, streams = 0, events = 0, host_blocks = 0;

  FakeGpu() { current = this; }
  FakeGpu(const FakeGpu&) = delete;
  FakeGpu& operator=(const FakeGpu&) = delete;
  ~FakeGpu() { current = nullptr; }

  DriverResult Result(std::string_view function) {
    const int call = calls[std::string(function)]++;
    const auto found = failures.find(function);
    return found == failures.end() || call < found->second.first ? kDriverSuccess
                                                                 : found->second.second;
  }
  bool AllGivenBack() const {
    return sizes.empty() && contexts == 0 && modules == 0 && streams == 0 && events == 0 &&
           host_blocks == 0;
  }

  static inline FakeGpu* current = nullptr;
};

// The text and the name of errors that tests use.
inline constexpr DriverResult kFakeLost = 214;
inline constexpr DriverResult kFakeNoBinary = 209;

namespace fake {

// Counts a call. Runs `work` unless the function fails.
template <class Work>
DriverResult Answer(std::string_view function, const Work& work) {
  const DriverResult result = FakeGpu::current->Result(function);
  if (result == kDriverSuccess) work(*FakeGpu::current);
  return result;
}

inline DriverResult GetErrorName(DriverResult error, const char** name) {
  *name = error == kFakeLost ? "CUDA_ERROR_ECC_UNCORRECTABLE" : "CUDA_ERROR_NO_BINARY_FOR_GPU";
  return error == kFakeLost || error == kFakeNoBinary ? kDriverSuccess : 1;
}
inline DriverResult GetErrorString(DriverResult error, const char** text) {
  *text = error == kFakeLost ? "uncorrectable ECC error encountered" : "no kernel image";
  return kDriverSuccess;
}

inline int AttributeOf(const FakeGpu& gpu, int attribute) {
  switch (attribute) {
    case kProcessorsAttribute:
      return 132;
    case kMajorAttribute:
      return gpu.major;
    case kMinorAttribute:
      return gpu.minor;
    default:
      return gpu.shared_bytes;
  }
}

inline DriverResult MemAlloc(DriverAddress* address, size_t bytes) {
  FakeGpu& gpu = *FakeGpu::current;
  const DriverResult result = gpu.Result("mem_alloc");
  if (result != kDriverSuccess) return result;
  if (bytes > gpu.memory_bytes - gpu.taken_bytes) return kDriverOutOfMemory;
  void* const memory = std::malloc(bytes);
  std::memset(memory, 0xff, bytes);
  *address = reinterpret_cast<DriverAddress>(memory);
  gpu.sizes[*address] = bytes;
  gpu.taken_bytes += bytes;
  return kDriverSuccess;
}

// A function of a module is an emulated kernel.
inline DriverResult ModuleGetFunction(DriverFunction* function, DriverModule /*module*/,
                                      const char* name) {
  constexpr std::string_view kPrefix = "godwit_";
  const std::string_view whole = name;
  if (!whole.starts_with(kPrefix)) return 500;
  const EmulatedKernel* const kernel = FindEmulatedKernel(whole.substr(kPrefix.size()));
  *function = const_cast<EmulatedKernel*>(kernel);
  return kernel == nullptr ? 500 : FakeGpu::current->Result("module_get_function");
}

inline DriverResult LaunchKernel(DriverFunction function, unsigned grid_x, unsigned grid_y,
                                 unsigned grid_z, unsigned block_x, unsigned block_y,
                                 unsigned block_z, unsigned shared_bytes, DriverStream /*stream*/,
                                 void** args, void** extra) {
  const auto& kernel = *static_cast<const EmulatedKernel*>(function);
  FakeGpu& gpu = *FakeGpu::current;
  const auto asked = gpu.shared_asked.find(kernel.name);
  const int may_have = asked == gpu.shared_asked.end() ? 48 << 10 : asked->second;
  if (static_cast<int>(block_x) != kernel.threads || block_y != 1 || block_z != 1 ||
      shared_bytes != kernel.shared_bytes || static_cast<int>(shared_bytes) > may_have ||
      extra != nullptr) {
    return 1;
  }
  return Answer("launch_kernel", [&](FakeGpu&) {
    kernel.run(args[0], {grid_x, grid_y, grid_z}, ThreadOrder::kAscending);
  });
}

// GPUs, contexts and modules.
inline void SetFacts(CudaDriver& driver) {
  driver.init = [](unsigned) { return Answer("init", [](FakeGpu&) {}); };
  driver.driver_get_version = [](int* version) {
    return Answer("driver_get_version", [&](FakeGpu& gpu) { *version = gpu.driver_version; });
  };
  driver.get_error_name = GetErrorName;
  driver.get_error_string = GetErrorString;
  driver.device_get_count = [](int* count) {
    return Answer("device_get_count", [&](FakeGpu& gpu) { *count = gpu.count; });
  };
  driver.device_get = [](DriverDevice* device, int number) {
    return Answer("device_get", [&](FakeGpu&) { *device = number; });
  };
  driver.device_get_name = [](char* name, int bytes, DriverDevice) {
    return Answer("device_get_name", [&](FakeGpu& gpu) {
      std::strncpy(name, gpu.name.c_str(), static_cast<size_t>(bytes));
    });
  };
  driver.device_get_attribute = [](int* value, int attribute, DriverDevice) {
    return Answer("device_get_attribute",
                  [&](FakeGpu& gpu) { *value = AttributeOf(gpu, attribute); });
  };
  driver.device_total_mem = [](size_t* bytes, DriverDevice) {
    return Answer("device_total_mem", [&](FakeGpu& gpu) { *bytes = gpu.memory_bytes; });
  };
  driver.device_primary_ctx_retain = [](DriverContext* context, DriverDevice) {
    return Answer("device_primary_ctx_retain", [&](FakeGpu& gpu) {
      *context = &gpu;
      ++gpu.contexts;
    });
  };
  driver.device_primary_ctx_release = [](DriverDevice) {
    return Answer("device_primary_ctx_release", [](FakeGpu& gpu) { --gpu.contexts; });
  };
  driver.ctx_set_current = [](DriverContext) { return Answer("ctx_set_current", [](FakeGpu&) {}); };
  driver.module_load_data = [](DriverModule* module, const void*) {
    return Answer("module_load_data", [&](FakeGpu& gpu) {
      *module = &gpu;
      ++gpu.modules;
    });
  };
  driver.module_unload = [](DriverModule) {
    return Answer("module_unload", [](FakeGpu& gpu) { --gpu.modules; });
  };
  driver.module_get_function = ModuleGetFunction;
  driver.func_set_attribute = [](DriverFunction function, int attribute, int value) {
    return Answer("func_set_attribute", [&](FakeGpu& gpu) {
      if (attribute != kFunctionSharedBytesAttribute) return;
      gpu.shared_asked[static_cast<const EmulatedKernel*>(function)->name] = value;
    });
  };
}

// Memory and copies.
inline void SetMemory(CudaDriver& driver) {
  driver.mem_get_info = [](size_t* free_bytes, size_t* total_bytes) {
    return Answer("mem_get_info", [&](FakeGpu& gpu) {
      *free_bytes = gpu.memory_bytes - gpu.taken_bytes;
      *total_bytes = gpu.memory_bytes;
    });
  };
  driver.mem_alloc = MemAlloc;
  driver.mem_free = [](DriverAddress address) {
    return Answer("mem_free", [&](FakeGpu& gpu) {
      gpu.taken_bytes -= gpu.sizes.at(address);
      gpu.sizes.erase(address);
      std::free(reinterpret_cast<void*>(address));
    });
  };
  driver.mem_host_alloc = [](void** memory, size_t bytes, unsigned flags) {
    if (flags != 0) return 1;
    return Answer("mem_host_alloc", [&](FakeGpu& gpu) {
      *memory = std::malloc(bytes);
      ++gpu.host_blocks;
    });
  };
  driver.mem_free_host = [](void* memory) {
    return Answer("mem_free_host", [&](FakeGpu& gpu) {
      std::free(memory);
      --gpu.host_blocks;
    });
  };
  driver.memcpy_htod_async = [](DriverAddress to, const void* from, size_t bytes, DriverStream) {
    return Answer("memcpy_htod_async",
                  [&](FakeGpu&) { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });
  };
  driver.memcpy_dtoh_async = [](void* to, DriverAddress from, size_t bytes, DriverStream) {
    return Answer("memcpy_dtoh_async",
                  [&](FakeGpu&) { std::memcpy(to, reinterpret_cast<const void*>(from), bytes); });
  };
}

// Streams, events and launches.
inline void SetStreams(CudaDriver& driver) {
  driver.stream_create = [](DriverStream* stream, unsigned flags) {
    if (flags != kStreamNonBlocking) return 1;
    return Answer("stream_create", [&](FakeGpu& gpu) {
      *stream = &gpu;
      ++gpu.streams;
    });
  };
  driver.stream_destroy = [](DriverStream) {
    return Answer("stream_destroy", [](FakeGpu& gpu) { --gpu.streams; });
  };
  driver.stream_synchronize = [](DriverStream) {
    return Answer("stream_synchronize", [](FakeGpu&) {});
  };
  driver.stream_wait_event = [](DriverStream, DriverEvent, unsigned) {
    return Answer("stream_wait_event", [](FakeGpu&) {});
  };
  driver.event_create = [](DriverEvent* event, unsigned flags) {
    if (flags != kEventDisableTiming) return 1;
    return Answer("event_create", [&](FakeGpu& gpu) {
      *event = &gpu;
      ++gpu.events;
    });
  };
  driver.event_destroy = [](DriverEvent) {
    return Answer("event_destroy", [](FakeGpu& gpu) { --gpu.events; });
  };
  driver.event_record = [](DriverEvent, DriverStream) {
    return Answer("event_record", [](FakeGpu&) {});
  };
  driver.event_synchronize = [](DriverEvent) {
    return Answer("event_synchronize", [](FakeGpu&) {});
  };
  driver.ctx_synchronize = [] { return Answer("ctx_synchronize", [](FakeGpu&) {}); };
  driver.launch_kernel = LaunchKernel;
}

inline CudaDriver Table() {
  CudaDriver driver = {};
  SetFacts(driver);
  SetMemory(driver);
  SetStreams(driver);
  return driver;
}

}  // namespace fake
}  // namespace godwit::cuda
