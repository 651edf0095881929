#include "cuda/cuda_driver.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/shared_library.h"

namespace godwit::cuda {
CudaDriver LoadCudaDriver(const char* file) {
  const SharedLibrary library(file, ErrorKind::kUnsupported,
                              fmt::format("GPUs need {}, which NVIDIA's driver brings", file));
  const auto find = [&](auto*& function, const char* name) {
    library.Find(function, name, "NVIDIA's driver of CUDA 12 or later");
  };
  CudaDriver driver;
  find(driver.init, "cuInit");
  find(driver.driver_get_version, "cuDriverGetVersion");
  find(driver.get_error_name, "cuGetErrorName");
  find(driver.get_error_string, "cuGetErrorString");
  find(driver.device_get_count, "cuDeviceGetCount");
  find(driver.device_get, "cuDeviceGet");
  find(driver.device_get_name, "cuDeviceGetName");
  find(driver.device_get_attribute, "cuDeviceGetAttribute");
  find(driver.device_total_mem, "cuDeviceTotalMem_v2");
  find(driver.device_primary_ctx_retain, "cuDevicePrimaryCtxRetain");
  find(driver.device_primary_ctx_release, "cuDevicePrimaryCtxRelease_v2");
  find(driver.ctx_set_current, "cuCtxSetCurrent");
  find(driver.module_load_data, "cuModuleLoadData");
  find(driver.module_unload, "cuModuleUnload");
  find(driver.module_get_function, "cuModuleGetFunction");
  find(driver.func_set_attribute, "cuFuncSetAttribute");
  find(driver.mem_get_info, "cuMemGetInfo_v2");
  find(driver.mem_alloc, "cuMemAlloc_v2");
  find(driver.mem_free, "cuMemFree_v2");
  find(driver.mem_host_alloc, "cuMemHostAlloc");
  find(driver.mem_free_host, "cuMemFreeHost");
  find(driver.memcpy_htod_async, "cuMemcpyHtoDAsync_v2");
  find(driver.memcpy_dtoh_async, "cuMemcpyDtoHAsync_v2");
  find(driver.stream_create, "cuStreamCreate");
  find(driver.stream_destroy, "cuStreamDestroy_v2");
  find(driver.stream_synchronize, "cuStreamSynchronize");
  find(driver.stream_wait_event, "cuStreamWaitEvent");
  find(driver.event_create, "cuEventCreate");
  find(driver.event_destroy, "cuEventDestroy_v2");
  find(driver.event_record, "cuEventRecord");
  find(driver.event_synchronize, "cuEventSynchronize");
  find(driver.ctx_synchronize, "cuCtxSynchronize");
  find(driver.launch_kernel, "cuLaunchKernel");
  return driver;
}

const CudaDriver& LoadedCudaDriver() {
  static const CudaDriver driver = LoadCudaDriver(kDriverFile);
  return driver;
}

}  // namespace godwit::cuda
