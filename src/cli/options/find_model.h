// The model that -m means.
#pragma once

#include <string>

namespace godwit::cli {

// name: a GGUF file, a folder, or ORG/NAME of a model in the Hugging Face cache (HF_HUB_CACHE,
// HF_HOME/hub or ~/.cache/huggingface/hub), whose branch "main" counts; what is there by that name
// comes first. Behind a folder or ORG/NAME, ":Q4_K_M" chooses one of several GGUF models
// (checkpoint/gguf_choice.h). Returns a folder or a GGUF file. At a terminal, a
// model that is not in the cache is offered to be downloaded. Throws Error(kIo) for what is not
// there, with the command that downloads it; kInput where there are several, with the names to
// choose by; and as ModelFolder does.
std::string FindModel(const std::string& name);

// For people: "org/name" or "org/name:Q4_K_M" of what lies in the cache, else the last name of the
// folder or file.
std::string ModelName(const std::string& model);

}  // namespace godwit::cli
