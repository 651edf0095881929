// The folder that -m means.
#pragma once

#include <string>

namespace godwit::cli {

// name: a folder, or ORG/NAME of a model in the Hugging Face cache (HF_HUB_CACHE, HF_HOME/hub or
// ~/.cache/huggingface/hub), whose branch "main" counts; a folder comes first. Throws Error(kIo)
// for what is not there, with how to download it, kInput for a file and kUnsupported for one in
// another format.
std::string FindModel(const std::string& name);

// For people: "org/name" of a folder in the cache, else the folder's last name.
std::string ModelName(const std::string& folder);

}  // namespace godwit::cli
