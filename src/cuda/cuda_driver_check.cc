// Compares the types of CudaDriver with NVIDIA's header, where that is (room.cmake). Nothing is
// left of this file in a program.
#include <cuda.h>

#include <type_traits>

#include "cuda/cuda_driver.h"

namespace godwit::cuda {
namespace {

// Whether arguments are handed over alike: pointers, or numbers of one size.
template <class A, class B>
constexpr bool AreAlike() {
  return sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B> &&
         std::is_floating_point_v<A> == std::is_floating_point_v<B>;
}

template <class Mine, class Theirs>
struct Alike : std::false_type {};
template <class Result, class... Mine, class TheirResult, class... Theirs>
requires(sizeof...(Mine) ==
         sizeof...(Theirs)) struct Alike<Result (*)(Mine...), TheirResult (*)(Theirs...)>
    : std::bool_constant<AreAlike<Result, TheirResult>() && (AreAlike<Mine, Theirs>() && ...)> {
};

#define GODWIT_SAME(member, function) \
  static_assert(Alike<decltype(CudaDriver::member), decltype(&(function))>::value)
GODWIT_SAME(init, cuInit);
GODWIT_SAME(driver_get_version, cuDriverGetVersion);
GODWIT_SAME(get_error_name, cuGetErrorName);
GODWIT_SAME(get_error_string, cuGetErrorString);
GODWIT_SAME(device_get_count, cuDeviceGetCount);
GODWIT_SAME(device_get, cuDeviceGet);
GODWIT_SAME(device_get_name, cuDeviceGetName);
GODWIT_SAME(device_get_attribute, cuDeviceGetAttribute);
GODWIT_SAME(device_total_mem, cuDeviceTotalMem_v2);
GODWIT_SAME(device_primary_ctx_retain, cuDevicePrimaryCtxRetain);
GODWIT_SAME(device_primary_ctx_release, cuDevicePrimaryCtxRelease_v2);
GODWIT_SAME(ctx_set_current, cuCtxSetCurrent);
GODWIT_SAME(module_load_data, cuModuleLoadData);
GODWIT_SAME(module_unload, cuModuleUnload);
GODWIT_SAME(module_get_function, cuModuleGetFunction);
GODWIT_SAME(func_set_attribute, cuFuncSetAttribute);
GODWIT_SAME(mem_get_info, cuMemGetInfo_v2);
GODWIT_SAME(mem_alloc, cuMemAlloc_v2);
GODWIT_SAME(mem_free, cuMemFree_v2);
GODWIT_SAME(mem_host_alloc, cuMemHostAlloc);
GODWIT_SAME(mem_free_host, cuMemFreeHost);
GODWIT_SAME(memcpy_htod_async, cuMemcpyHtoDAsync_v2);
GODWIT_SAME(memcpy_dtoh_async, cuMemcpyDtoHAsync_v2);
GODWIT_SAME(stream_create, cuStreamCreate);
GODWIT_SAME(stream_destroy, cuStreamDestroy_v2);
GODWIT_SAME(stream_synchronize, cuStreamSynchronize);
GODWIT_SAME(stream_wait_event, cuStreamWaitEvent);
GODWIT_SAME(event_create, cuEventCreate);
GODWIT_SAME(event_destroy, cuEventDestroy_v2);
GODWIT_SAME(event_record, cuEventRecord);
GODWIT_SAME(event_synchronize, cuEventSynchronize);
GODWIT_SAME(ctx_synchronize, cuCtxSynchronize);
GODWIT_SAME(launch_kernel, cuLaunchKernel);
#undef GODWIT_SAME

static_assert(kDriverOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(kDriverNoDevice == CUDA_ERROR_NO_DEVICE);
static_assert(kProcessorsAttribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(kMajorAttribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(kMinorAttribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(kSharedBytesAttribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
static_assert(kFunctionSharedBytesAttribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(kEventDisableTiming == CU_EVENT_DISABLE_TIMING);

}  // namespace
}  // namespace godwit::cuda
