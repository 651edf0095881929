// Which files of a repository are the model that somebody asks for.
#pragma once

#include <string>
#include <vector>

#include "hub/listing.h"

namespace godwit::hub {

struct ChosenFiles {
  std::string word;               // behind "org/name:", for a GGUF model; else empty
  std::vector<RemoteFile> files;  // the model itself last
};

// quant: of a GGUF model, as for -m (checkpoint/gguf_choice.h); all its parts. Empty: the
// safetensors with config.json, tokenizer and templates, or else the only GGUF model. Throws
// Error(kInput) for several, with their names and sizes; Error(kIo) for what is not there, with
// what is; and Error(kUnsupported) where there is nothing that could be loaded.
ChosenFiles ChooseFiles(const Listing& listing, const std::string& quant);

}  // namespace godwit::hub
