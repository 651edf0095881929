// The keys of a GGUF file that say how a model computes: the inverse of model/gguf_config.h.
//
// Internal to src/checkpoint.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/model_folder.h"
#include "weights/gguf_writer.h"

namespace godwit {

// Puts all keys but those of the text. Facts without a key are left out, and found when the keys
// are read back. says_windows: whether keys say which layers have a window, where that is not the
// pattern of all published models.
void PutModelKeys(const ModelFolder& model, std::string_view architecture, bool says_windows,
                  GgufKeys& keys);

// The tensors of rope scaling that has a factor for each frequency, and these factors.
std::vector<std::pair<std::string, std::vector<float>>> RopeFactorTensors(const DecoderSpec& spec);

}  // namespace godwit
