// The last step of reading a config.json: what it says beside the fields that its family has.
#pragma once

#include <string>
#include <vector>

#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

// A model computes another function where a key such as logit_scale or clip_qkv asks for it. Throws
// Error(kUnsupported) for such a key, with its value, unless the family read it from `config` or
// the value changes nothing. Adds to spec.warnings the keys that transformers ignores too and that
// published models have all the same, and what `rope_scaling` holds and nothing reads.
//
// Keys that come with tensors of their own, such as norms of queries and keys, are not looked at:
// those tensors are found to be unexpected, or missing.
void CheckUnreadKeys(const HfConfig& config, DecoderSpec& spec);

// For a message about a model that no family here describes: "kv_lora_rank (multi-head latent
// attention)" of each key with which it asks for what nobody read from `config`, those with tensors
// of their own among them. Counts the keys of which it knows as read.
std::vector<std::string> UnreadFunctions(const HfConfig& config);

}  // namespace godwit
