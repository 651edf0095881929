// The metadata of a GGUF file as the config.json that Hugging Face would have of its model. It has
// facts about names and meanings. The families that read config.json decide what they ask of an
// engine.
#pragma once

#include <string>

#include "model/gguf_family.h"
#include "weights/gguf_files.h"

namespace godwit {

// Whether layers have a second norm before attention, which tells two Falcons apart
// (FindGgufFamily).
bool HasSecondAttentionNorm(const GgufFiles& model);

// Throws Error(kFormat) where heads and sizes make no sense.
GgufShape ShapeOf(const GgufFiles& model, const GgufFamily& family);

// The text of a config.json. Fields that ask for another function and are not translated further (a
// scale of the logits, windows) have config.json's name. The family reads or refuses them. Throws
// Error(kUnsupported) for rope scaling that is not translated, Error(kFormat) for missing and bad
// values, each with its key.
std::string GgufConfig(const GgufFiles& model, const GgufShape& shape, const GgufFamily& family);

}  // namespace godwit
