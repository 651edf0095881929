# Kernels for GPUs, where ./setup --cuda has brought a compiler of CUDA, or GODWIT_CUDA_DIR names one
# of version 12 or later. Without one, the room is built and tested all the same, and a program says
# that it has no kernels.
option(GODWIT_CUDA "Compile kernels for GPUs where GODWIT_CUDA_DIR has a compiler of CUDA" ON)
set(GODWIT_CUDA_DIR "${PROJECT_SOURCE_DIR}/build/cuda" CACHE PATH
    "The folder that ./setup --cuda makes, or one of CUDA itself")

target_link_libraries(godwit_cuda PRIVATE ${CMAKE_DL_LIBS})

set(driver_check ${dir}/cuda_driver_check.cc)
set_source_files_properties(${driver_check} PROPERTIES HEADER_FILE_ONLY ON)
set(nvcc)
if(GODWIT_CUDA AND NOT CMAKE_CROSSCOMPILING)
  file(GLOB nvcc ${GODWIT_CUDA_DIR}/bin/nvcc ${GODWIT_CUDA_DIR}/nvidia/cu*/bin/nvcc)
endif()
if(NOT nvcc)
  return()
endif()
list(GET nvcc 0 nvcc)
message(STATUS "Kernels for GPUs: ${nvcc}")

# Code for Ampere and Hopper, and PTX, of which a driver makes code for later GPUs. Operations are
# not fused, as on the CPU (CMakeLists.txt).
set(image ${PROJECT_BINARY_DIR}/cuda/kernels.fatbin)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/cuda)
add_custom_command(
  OUTPUT ${image}
  COMMAND ${nvcc} -fatbin -std=c++20 -O3 -fmad=false --expt-relaxed-constexpr
          -I${PROJECT_SOURCE_DIR}/src
          -gencode arch=compute_80,code=[sm_80,compute_80] -gencode arch=compute_90a,code=sm_90a
          -MD -MF ${image}.d -MT ${image} -o ${image} ${dir}/kernels/kernels.cu
  DEPENDS ${dir}/kernels/kernels.cu DEPFILE ${image}.d
  COMMENT "Compiling kernels for GPUs" VERBATIM)
add_custom_target(godwit_kernel_image DEPENDS ${image})
add_dependencies(godwit_cuda godwit_kernel_image)
set_source_files_properties(${dir}/kernel_image.cc PROPERTIES
  COMPILE_DEFINITIONS "GODWIT_KERNEL_IMAGE=\"${image}\"" OBJECT_DEPENDS ${image}
  SKIP_UNITY_BUILD_INCLUSION ON)

# The driver's functions are compared with NVIDIA's header.
cmake_path(GET nvcc PARENT_PATH cuda)
cmake_path(GET cuda PARENT_PATH cuda)
if(EXISTS ${cuda}/include/cuda.h)
  set_source_files_properties(${driver_check} PROPERTIES
    HEADER_FILE_ONLY OFF SKIP_UNITY_BUILD_INCLUSION ON INCLUDE_DIRECTORIES ${cuda}/include)
endif()
