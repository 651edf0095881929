// CudaDriver: the functions of NVIDIA's driver in use, loaded at run time. So no program needs a
// library of CUDA to start, nor to be built.
//
// Types are those of the driver's interface ("CUDA Driver API", cuda.h), declared here.
// cuda_driver_check.cc compares them with NVIDIA's header where that is.
#pragma once

#include <cstddef>
#include <cstdint>

namespace godwit::cuda {

// CUresult. Only values that CudaDevice tells apart.
using DriverResult = int;
inline constexpr DriverResult kDriverSuccess = 0;
inline constexpr DriverResult kDriverOutOfMemory = 2;
inline constexpr DriverResult kDriverNoDevice = 100;

// CUdevice_attribute, CUfunction_attribute and flags.
inline constexpr int kProcessorsAttribute = 16;
inline constexpr int kMajorAttribute = 75;
inline constexpr int kMinorAttribute = 76;
inline constexpr int kSharedBytesAttribute = 97;         // of a block that asks for it
inline constexpr int kFunctionSharedBytesAttribute = 8;  // the largest that launches may ask for
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;

using DriverDevice = int;        // CUdevice
using DriverAddress = uint64_t;  // CUdeviceptr
using DriverContext = void*;     // CUcontext
using DriverModule = void*;      // CUmodule
using DriverFunction = void*;    // CUfunction
using DriverStream = void*;      // CUstream
using DriverEvent = void*;       // CUevent

struct CudaDriver {
  DriverResult (*init)(unsigned flags);
  DriverResult (*driver_get_version)(int* version);
  DriverResult (*get_error_name)(DriverResult error, const char** name);
  DriverResult (*get_error_string)(DriverResult error, const char** text);
  DriverResult (*device_get_count)(int* count);
  DriverResult (*device_get)(DriverDevice* device, int number);
  DriverResult (*device_get_name)(char* name, int bytes, DriverDevice device);
  DriverResult (*device_get_attribute)(int* value, int attribute, DriverDevice device);
  DriverResult (*device_total_mem)(size_t* bytes, DriverDevice device);
  DriverResult (*device_primary_ctx_retain)(DriverContext* context, DriverDevice device);
  DriverResult (*device_primary_ctx_release)(DriverDevice device);
  DriverResult (*ctx_set_current)(DriverContext context);
  DriverResult (*module_load_data)(DriverModule* module, const void* image);
  DriverResult (*module_unload)(DriverModule module);
  DriverResult (*module_get_function)(DriverFunction* function, DriverModule module,
                                      const char* name);
  DriverResult (*func_set_attribute)(DriverFunction function, int attribute, int value);
  DriverResult (*mem_get_info)(size_t* free_bytes, size_t* total_bytes);
  DriverResult (*mem_alloc)(DriverAddress* address, size_t bytes);
  DriverResult (*mem_free)(DriverAddress address);
  DriverResult (*mem_host_alloc)(void** memory, size_t bytes, unsigned flags);
  DriverResult (*mem_free_host)(void* memory);
  DriverResult (*memcpy_htod_async)(DriverAddress to, const void* from, size_t bytes,
                                    DriverStream stream);
  DriverResult (*memcpy_dtoh_async)(void* to, DriverAddress from, size_t bytes,
                                    DriverStream stream);
  DriverResult (*stream_create)(DriverStream* stream, unsigned flags);
  DriverResult (*stream_destroy)(DriverStream stream);
  DriverResult (*stream_synchronize)(DriverStream stream);
  DriverResult (*stream_wait_event)(DriverStream stream, DriverEvent event, unsigned flags);
  DriverResult (*event_create)(DriverEvent* event, unsigned flags);
  DriverResult (*event_destroy)(DriverEvent event);
  DriverResult (*event_record)(DriverEvent event, DriverStream stream);
  DriverResult (*event_synchronize)(DriverEvent event);
  DriverResult (*ctx_synchronize)();
  DriverResult (*launch_kernel)(DriverFunction function, unsigned grid_x, unsigned grid_y,
                                unsigned grid_z, unsigned block_x, unsigned block_y,
                                unsigned block_z, unsigned shared_bytes, DriverStream stream,
                                void** args, void** extra);
};

// The file that NVIDIA's driver brings.
inline constexpr const char* kDriverFile = "libcuda.so.1";

// Loads the driver, once for the process in the form without a file. Thread-safe. Throws
// Error(kUnsupported) where it is not installed, or too old.
const CudaDriver& LoadedCudaDriver();
CudaDriver LoadCudaDriver(const char* file);

}  // namespace godwit::cuda
