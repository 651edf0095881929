// The choice of a repository's files that make up the model asked for.
#pragma once

#include <string>
#include <vector>

#include "hub/listing.h"

namespace godwit::hub {

struct ChosenFiles {
  std::string word;               // for a GGUF model the part behind "org/name:"; else empty
  std::vector<RemoteFile> files;  // the model itself last
};

// quant: chooses a GGUF model, with all its parts, as for -m (checkpoint/gguf_choice.h). Empty: the
// safetensors with config.json, tokenizer and templates, or else the only GGUF model. Throws
// Error(kInput) for several models, with their names and sizes. Throws Error(kIo) for a missing
// model, with those that exist, and Error(kUnsupported) where nothing could be loaded.
ChosenFiles ChooseFiles(const Listing& listing, const std::string& quant);

}  // namespace godwit::hub
