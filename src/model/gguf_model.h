// A model in GGUF files, as the rest of the engine knows models: a config.json, and tensors with
// the names that Hugging Face gives them. Nothing above this room learns of GGUF's names.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "weights/gguf_files.h"
#include "weights/gguf_metadata.h"
#include "weights/weight_source.h"

namespace godwit {

struct GgufModel {
  std::unique_ptr<const WeightSource> weights;
  std::string config;     // the text of a config.json
  GgufMetadata metadata;  // views into the files that `weights` has mapped
};

// Translates files that are open. Throws as ShapeOf, FindGgufFamily and GgufConfig do. Throws
// Error(kUnsupported) for a tensor of the model whose type is not built, with those that are.
GgufModel TranslateGguf(GgufFiles files);

// Throws that, and as OpenGgufFiles does.
GgufModel OpenGgufModel(const std::filesystem::path& file);

}  // namespace godwit
