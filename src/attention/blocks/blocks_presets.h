// The presets of the policy `blocks`, other spellings of its settings, and the source of each
// number. A source is KTransformers' long-context text, the configuration file that its program
// shipped, or godwit.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "attention/blocks/blocks_spec.h"

namespace godwit {

struct BlocksPreset {
  std::string_view name;
  void (*apply)(BlocksSpec& spec);
};
std::span<const BlocksPreset> BlocksPresets();

// The name that BlocksSpec has for a setting, or for a value of representative_type, of
// KTransformers. Other names stay as they are.
std::string_view CanonicalBlocksKey(std::string_view key);
std::string_view CanonicalRepresentative(std::string_view type);

// Says for people which settings are those of KTransformers' text, which are those of its
// configuration file, and which are neither's. Settings that KTransformers lacks are left out.
std::string ExplainBlocksSources(const BlocksSpec& spec);

}  // namespace godwit
