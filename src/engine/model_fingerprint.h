// Whether two hosts have the same model, without reading all of it.
#pragma once

#include <string>

namespace godwit {

// Of the folder's config.json, *.safetensors, *.gguf and the file of its tokenizer, or of a GGUF
// file and its other parts: their names and sizes, their first MiB, in which a file of weights
// describes itself, and 256 samples of 4 KiB at equal distances. So it is another one where a 256th
// of a file has changed, such as a matrix of a model that was tuned, and may be the same where
// single numbers have. Throws std::filesystem::filesystem_error.
std::string ModelFingerprint(const std::string& folder);

// When one of those files was written last, in nanoseconds: another time where single numbers have
// changed, and where it is the same model after all.
std::string LastChange(const std::string& folder);

}  // namespace godwit
