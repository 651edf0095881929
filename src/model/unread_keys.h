// The last step of reading a config.json: keys beside the fields that its family has.
#pragma once

#include <string>
#include <vector>

#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

// Checks keys that no family has read. A model computes another function where a key such as
// logit_scale or clip_qkv asks for it. Throws Error(kUnsupported) for such a key, with its value,
// unless the family read it from `config` or the value changes nothing. Adds to spec.warnings the
// keys that transformers ignores too and that published models have all the same. Adds also the
// unread contents of `rope_scaling`.
//
// Keys that come with tensors of their own, such as norms of queries and keys, are not looked at.
// Those tensors are found to be unexpected, or missing.
void CheckUnreadKeys(const HfConfig& config, DecoderSpec& spec);

// The unread functions for a message about a model that no family here describes. Each is a key
// that asks for a function and was not read from `config`, such as "kv_lora_rank (multi-head latent
// attention)". Keys with tensors of their own are among them. Counts the keys of which it knows as
// read.
std::vector<std::string> UnreadFunctions(const HfConfig& config);

}  // namespace godwit
