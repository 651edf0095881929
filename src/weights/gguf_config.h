// What the metadata of a GGUF file says of its model, as the config.json that Hugging Face would
// have of it. Facts about names and meanings; what they ask of an engine is said by the families
// that read config.json.
#pragma once

#include <string>

#include "weights/gguf_families.h"
#include "weights/gguf_files.h"

namespace godwit {

// What tells two Falcons apart (FindGgufFamily).
bool HasSecondAttentionNorm(const GgufFiles& model);

// Throws Error(kFormat) where heads and sizes make no sense.
GgufShape ShapeOf(const GgufFiles& model);

// The text of a config.json. What asks for another function and is not translated further (a scale
// of the logits, windows) has the name that config.json has for it, for the family to read or to
// refuse. Throws Error(kUnsupported) for rope scaling that is not translated, Error(kFormat) for
// missing and bad values, each with its key.
std::string GgufConfig(const GgufFiles& model, const GgufShape& shape, const GgufFamily& family);

}  // namespace godwit
