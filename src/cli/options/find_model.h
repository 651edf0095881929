// The folder that -m means, and what to do where it is none that can be loaded.
#pragma once

#include <string>

#include "weights/hf_config.h"

namespace godwit::cli {

// name: a folder, or ORG/NAME of a model in the Hugging Face cache (HF_HUB_CACHE, HF_HOME/hub or
// ~/.cache/huggingface/hub), whose branch "main" counts; a folder comes first. Throws Error(kIo)
// for what is not there, with how to download it, kInput for a file and kUnsupported for one in
// another format.
std::string FindModel(const std::string& name);

// The config.json of a folder. Where there is none, throws an Error that says what the folder
// holds instead: GGUF, an adapter, models in folders of their own.
HfConfig LoadConfig(const std::string& folder);

// Throws Error(kUnsupported) with what to do where a folder has no tokenizer.json. Weights take
// longer to load than this to find.
void RequireTokenizer(const std::string& folder);

// For people: "org/name" of a folder in the cache, else the folder's last name.
std::string ModelName(const std::string& folder);

}  // namespace godwit::cli
