#include "model/archs/mamba_gguf.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "model/gguf_fields.h"

namespace godwit {
namespace {

constexpr std::string_view kWidth = "ssm.inner_size";

int64_t MultipleOf(const GgufMetadata& metadata, int64_t part, std::string_view what) {
  const int64_t width = OwnInt(metadata, kWidth);
  if (width % part != 0) {
    metadata.Refuse(metadata.ArchitectureKey(kWidth),
                    fmt::format("a multiple of {} {}", part, what), fmt::format("{}", width));
  }
  return width / part;
}

}  // namespace

GgufMamba ReadMambaSizes(const GgufMetadata& metadata) {
  GgufMamba mamba{.width = OwnInt(metadata, kWidth),
                  .heads = OwnInt(metadata, "ssm.time_step_rank"),
                  .head_dim = 0,
                  .state = OwnInt(metadata, "ssm.state_size"),
                  .taps = OwnInt(metadata, "ssm.conv_kernel"),
                  .groups = OwnInt(metadata, "ssm.group_count")};
  mamba.head_dim = MultipleOf(metadata, mamba.heads, "heads");
  return mamba;
}

void CompleteMamba(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  const GgufMamba mamba = ReadMambaSizes(metadata);
  config["mamba_n_heads"] = mamba.heads;
  config["mamba_d_head"] = mamba.head_dim;
  config["mamba_d_state"] = mamba.state;
  config["mamba_d_conv"] = mamba.taps;
  config["mamba_n_groups"] = mamba.groups;
  config["mamba_conv_bias"] = shape.convolution_bias;
  config["decay_rates_negated"] = true;
}

int64_t ReadMambaExpansion(const GgufMetadata& metadata) {
  return MultipleOf(metadata, OwnInt(metadata, "embedding_length"), "numbers of a token");
}

const std::vector<bool>& ReadKeyless(const GgufMetadata& metadata, const GgufShape& shape) {
  if (shape.keyless.empty()) {
    metadata.Refuse(metadata.ArchitectureKey("attention.head_count_kv"),
                    fmt::format("a list, one for each of {} layers", ReadLayers(metadata).decoding),
                    "one number");
  }
  return shape.keyless;
}

}  // namespace godwit
