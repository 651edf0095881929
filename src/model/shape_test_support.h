// For tests only: a shape that loads in no time.
#pragma once

#include "model/archs/all.h"
#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

inline DecoderSpec SmallShape() {
  return DescribeModel(HfConfig::Parse(
      R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 160,
          "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
          "vocab_size": 192, "max_position_embeddings": 4096})",
      "small"));
}

}  // namespace godwit
