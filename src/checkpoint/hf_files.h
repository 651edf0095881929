// The files that a model of Hugging Face has beside its weights, made of a GGUF file. They are
// config.json, the tokenizer with its chat templates, and the tokens that end a text.
//
// They are read as the GGUF file is: the same tokens of a text, the same prompts of a chat. Two
// things are written as transformers has them and not as this engine reads them out of GGUF. They
// are Gemma's norms without the 1 that its code adds (GainsAreWhole), and Phi-3's LongRoPE.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "checkpoint/model_folder.h"

namespace godwit {

// config.json of a model in GGUF. "architectures" is what vLLM asks for; "torch_dtype" is bfloat16
// where the file has blocks, else the type of its matrices.
nlohmann::json HfConfigOf(const ModelFolder& model);

// Throws Error(kUnsupported) for a GGUF file of a family whose recurrent layers lie otherwise in
// folders: numbers in other forms, and heads in another order. Nothing brings them back.
void RequireHfForm(const ModelFolder& model);

// Whether the weights of norms, whose names end with "norm.weight", are 1 more in the file than
// where HfConfigOf is read.
bool GainsAreWhole(const ModelFolder& model);

// Writes config.json, tokenizer.json, tokenizer_config.json, generation_config.json and, where they
// lie beside the file, its draft heads. warn: of a tokenizer that is not supported, and so is not
// written. Throws Error(kIo), and as the parts of the model do.
void WriteHfFiles(const ModelFolder& model, const std::filesystem::path& folder,
                  const std::function<void(const std::string& message)>& warn);

}  // namespace godwit
