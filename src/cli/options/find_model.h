// The model that -m means.
#pragma once

#include <string>

namespace godwit::cli {

// name: a GGUF file, a folder, or ORG/NAME of a model in the Hugging Face cache (HF_HUB_CACHE,
// HF_HOME/hub or ~/.cache/huggingface/hub), on branch "main". An existing path of that name comes
// first. Behind a folder or ORG/NAME, ":Q4_K_M" chooses one of several GGUF models
// (checkpoint/gguf_choice.h). Returns a folder or a GGUF file. At a terminal, the user may download
// a model that is not in the cache. Throws Error(kIo) for a missing model, with the command that
// downloads it. Throws kInput for several models, with the names to choose by, and as ModelFolder
// does.
std::string FindModel(const std::string& name);

// A model's name for people: "org/name" or "org/name:Q4_K_M" for a model in the cache, else the
// last name of the folder or file.
std::string ModelName(const std::string& model);

}  // namespace godwit::cli
