#include "bench/kernels/onednn_matmul.h"

#include <fmt/format.h>
#include <omp.h>

#include <cstring>
#include <dnnl.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace godwit::bench {
namespace {

using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

struct Types {
  Type x, w, y;
};

Types TypesOf(DType dtype) {
  if (dtype == DType::kBF16) return {Type::bf16, Type::bf16, Type::f32};
  if (dtype == DType::kI8) return {Type::u8, Type::s8, Type::s32};
  return {Type::f32, Type::f32, Type::f32};
}

// Fills with small numbers: no sum overflows, no product is subnormal.
void Fill(const dnnl::memory& memory, DType dtype) {
  const auto bytes = memory.get_desc().get_size();
  auto* data = static_cast<char*>(memory.get_data_handle());
  for (size_t i = 0; i < bytes / SizeOf(dtype); ++i) {
    const auto value = static_cast<float>(i * 7 % 13) / 8;
    if (dtype == DType::kF32) {
      std::memcpy(data + 4 * i, &value, 4);
    } else if (dtype == DType::kBF16) {
      const BF16 narrow = ToBF16(value);
      std::memcpy(data + 2 * i, &narrow, 2);
    } else {
      data[i] = static_cast<char>(i * 7 % 13);
    }
  }
}

}  // namespace

struct OneDnnMatmul::Impl {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::matmul matmul;
  std::unordered_map<int, dnnl::memory> arguments;
};

OneDnnMatmul::OneDnnMatmul(DType dtype, int64_t rows, int64_t inputs, int64_t outputs)
    : impl_(std::make_unique<Impl>()) {
  omp_set_num_threads(1);
  const Types types = TypesOf(dtype);
  const dnnl::memory::desc x({rows, inputs}, types.x, Tag::ab);
  const dnnl::memory::desc w({inputs, outputs}, types.w, Tag::ba);
  const dnnl::memory::desc packed({inputs, outputs}, types.w, Tag::any);
  const dnnl::memory::desc y({rows, outputs}, types.y, Tag::ab);
  const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(x, packed, y), impl_->engine);
  impl_->matmul = dnnl::matmul(description);

  dnnl::memory plain(w, impl_->engine);
  Fill(plain, dtype);
  dnnl::memory best(description.weights_desc(), impl_->engine);
  dnnl::reorder(plain, best).execute(impl_->stream, plain, best);
  const dnnl::memory source(x, impl_->engine);
  Fill(source, dtype);
  impl_->arguments = {{DNNL_ARG_SRC, source},
                      {DNNL_ARG_WEIGHTS, best},
                      {DNNL_ARG_DST, dnnl::memory(y, impl_->engine)}};
  impl_->stream.wait();
}

OneDnnMatmul::~OneDnnMatmul() = default;

void OneDnnMatmul::Run() {
  impl_->matmul.execute(impl_->stream, impl_->arguments);
  impl_->stream.wait();
}

const char* OneDnnVersion() {
  static const std::string version = [] {
    const dnnl_version_t* v = dnnl_version();
    return fmt::format("v{}.{}.{}", v->major, v->minor, v->patch);
  }();
  return version.c_str();
}

}  // namespace godwit::bench
