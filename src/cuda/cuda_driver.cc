#include "cuda/cuda_driver.h"

#include <dlfcn.h>

#include "base/error.h"

namespace godwit::cuda {
namespace {

class DriverLoader {
 public:
  explicit DriverLoader(const char* file)
      : file_(file), library_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) {
      const char* const why = dlerror();
      Throw(ErrorKind::kUnsupported, "GPUs need {}, which NVIDIA's driver brings: {}", file,
            why == nullptr ? "it does not load" : why);
    }
  }

  // The library is never closed: its threads last as long as the process.
  template <typename Function>
  void Find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(dlsym(library_, name));
    if (function == nullptr) {
      Throw(ErrorKind::kUnsupported, "{} has no {}: expected NVIDIA's driver of CUDA 12 or later",
            file_, name);
    }
  }

 private:
  const char* file_;
  void* library_;
};

}  // namespace

CudaDriver LoadCudaDriver(const char* file) {
  const DriverLoader loader(file);
  CudaDriver driver;
  loader.Find(driver.init, "cuInit");
  loader.Find(driver.driver_get_version, "cuDriverGetVersion");
  loader.Find(driver.get_error_name, "cuGetErrorName");
  loader.Find(driver.get_error_string, "cuGetErrorString");
  loader.Find(driver.device_get_count, "cuDeviceGetCount");
  loader.Find(driver.device_get, "cuDeviceGet");
  loader.Find(driver.device_get_name, "cuDeviceGetName");
  loader.Find(driver.device_get_attribute, "cuDeviceGetAttribute");
  loader.Find(driver.device_total_mem, "cuDeviceTotalMem_v2");
  loader.Find(driver.device_primary_ctx_retain, "cuDevicePrimaryCtxRetain");
  loader.Find(driver.device_primary_ctx_release, "cuDevicePrimaryCtxRelease_v2");
  loader.Find(driver.ctx_set_current, "cuCtxSetCurrent");
  loader.Find(driver.module_load_data, "cuModuleLoadData");
  loader.Find(driver.module_unload, "cuModuleUnload");
  loader.Find(driver.module_get_function, "cuModuleGetFunction");
  loader.Find(driver.func_set_attribute, "cuFuncSetAttribute");
  loader.Find(driver.mem_get_info, "cuMemGetInfo_v2");
  loader.Find(driver.mem_alloc, "cuMemAlloc_v2");
  loader.Find(driver.mem_free, "cuMemFree_v2");
  loader.Find(driver.memcpy_htod_async, "cuMemcpyHtoDAsync_v2");
  loader.Find(driver.memcpy_dtoh_async, "cuMemcpyDtoHAsync_v2");
  loader.Find(driver.stream_create, "cuStreamCreate");
  loader.Find(driver.stream_destroy, "cuStreamDestroy_v2");
  loader.Find(driver.stream_synchronize, "cuStreamSynchronize");
  loader.Find(driver.stream_wait_event, "cuStreamWaitEvent");
  loader.Find(driver.event_create, "cuEventCreate");
  loader.Find(driver.event_destroy, "cuEventDestroy_v2");
  loader.Find(driver.event_record, "cuEventRecord");
  loader.Find(driver.ctx_synchronize, "cuCtxSynchronize");
  loader.Find(driver.launch_kernel, "cuLaunchKernel");
  return driver;
}

const CudaDriver& LoadedCudaDriver() {
  static const CudaDriver driver = LoadCudaDriver(kDriverFile);
  return driver;
}

}  // namespace godwit::cuda
