// Model fingerprints: whether two hosts have the same model, without reading all of it.
#pragma once

#include <string>

namespace godwit {

// The fingerprint of the folder's config.json, *.safetensors, *.gguf and the file of its tokenizer,
// or of a GGUF file and its other parts. It covers their names and sizes, their first MiB, and 256
// samples of 4 KiB at equal distances. A file of weights describes itself in the first MiB. The
// fingerprint differs where a 256th of a file has changed, such as a matrix of a model that was
// tuned. It may be the same where single numbers have changed. Throws
// std::filesystem::filesystem_error.
std::string ModelFingerprint(const std::string& folder);

// The time of the last write to those files, in nanoseconds. It differs where single numbers have
// changed, and where the model is the same after all.
std::string LastChange(const std::string& folder);

}  // namespace godwit
