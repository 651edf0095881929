#include "attention/blocks/blocks_presets.h"

#include <fmt/format.h>

#include <array>

namespace godwit {
namespace {

// The example of KTransformers' text: 16,384 tokens of blocks and window, and the first block. Its
// reading is dense up to the answer, and all heads choose together.
void ApplyText(BlocksSpec& spec) {
  spec.block_size = spec.initial = 128;
  spec.local_windows_len = 4096;
  spec.second_block_count = spec.preselect_block_count = 96;
  spec.representative_type = ops::RepresentativeType::kDynamic;
  spec.representative_num = 1;
  spec.separate = false;
  spec.dense_question = spec.preselect_votes = true;
}

// The config.yaml of release 0.1.3, as far as it differs from the text.
void ApplyConfigFile(BlocksSpec& spec) {
  ApplyText(spec);
  spec.second_block_count = spec.preselect_block_count = 32;
  spec.preselect_block = true;
  spec.dense_layer_num = 2;
  spec.token_step = 100;
}

constexpr BlocksPreset kBlocksPresets[] = {
    // InfLLM (arXiv 2402.04617), with as many tokens seen as in the other presets.
    {"infllm",
     [](BlocksSpec& spec) {
       spec.block_size = spec.initial = 128;
       spec.second_block_count = 24;
       spec.representative_type = ops::RepresentativeType::kDynamic;
       spec.representative_num = 4;
     }},
    {"ktransformers", ApplyText},
    {"ktransformers-yaml", ApplyConfigFile},
    {"meanstd",
     [](BlocksSpec& spec) { spec.representative_type = ops::RepresentativeType::kMeanStd; }},
    {"quest", [](BlocksSpec& spec) { spec.representative_type = ops::RepresentativeType::kQuest; }},
    // SnapKV (arXiv 2404.14469): the question's choice stays.
    {"snapkv",
     [](BlocksSpec& spec) {
       spec.preselect_block = true;
       spec.preselect_block_count = spec.second_block_count;
     }},
    // SnapKV with tokens for blocks, by votes, as KTransformers' text has it. As many tokens are
    // seen as with `snapkv`.
    {"snapkv-tokens",
     [](BlocksSpec& spec) {
       spec.second_block_count *= spec.block_size;
       spec.preselect_block_count = spec.second_block_count;
       spec.block_size = 1;
       spec.representative_type = ops::RepresentativeType::kMean;
       spec.preselect_block = spec.preselect_votes = spec.dense_question = true;
     }},
};

struct Spelling {
  std::string_view theirs, ours;
};
constexpr Spelling kKeys[] = {{"anchor_type", "representative_type"},
                              {"anchor_num", "representative_num"},
                              {"second_select_num", "second_block_count"}};
constexpr Spelling kTypes[] = {{"BLOCK_MEAN", "MEAN"}, {"BLOCK_MAX", "MAX"}, {"FIXED", "FIX"}};

std::string_view Canonical(std::span<const Spelling> spellings, std::string_view name) {
  for (const Spelling& spelling : spellings) {
    if (spelling.theirs == name) return spelling.ours;
  }
  return name;
}

// A setting that KTransformers has, too.
struct SharedSetting {
  std::string_view key;
  bool (*equal)(const BlocksSpec& a, const BlocksSpec& b);
};
template <auto kMember>
bool Same(const BlocksSpec& a, const BlocksSpec& b) {
  return a.*kMember == b.*kMember;
}
constexpr SharedSetting kSharedSettings[] = {
    {"block_size", Same<&BlocksSpec::block_size>},
    {"initial", Same<&BlocksSpec::initial>},
    {"local_windows_len", Same<&BlocksSpec::local_windows_len>},
    {"second_block_count", Same<&BlocksSpec::second_block_count>},
    {"representative_type", Same<&BlocksSpec::representative_type>},
    {"representative_num", Same<&BlocksSpec::representative_num>},
    {"head_select_mode", Same<&BlocksSpec::separate>},
    {"dense_layer_num", Same<&BlocksSpec::dense_layer_num>},
    {"token_step", Same<&BlocksSpec::token_step>},
    {"layer_step", Same<&BlocksSpec::layer_step>},
    {"preselect_block", Same<&BlocksSpec::preselect_block>},
    {"preselect_block_count", Same<&BlocksSpec::preselect_block_count>}};

}  // namespace

std::span<const BlocksPreset> BlocksPresets() { return kBlocksPresets; }

std::string_view CanonicalBlocksKey(std::string_view key) { return Canonical(kKeys, key); }

std::string_view CanonicalRepresentative(std::string_view type) { return Canonical(kTypes, type); }

std::string ExplainBlocksSources(const BlocksSpec& spec) {
  BlocksSpec text, file;
  ApplyText(text);
  ApplyConfigFile(file);
  constexpr std::string_view kSources[] = {
      "As in KTransformers' text and its config.yaml", "As in KTransformers' text",
      "As in KTransformers' config.yaml", "As in neither of them"};
  std::array<std::string, std::size(kSources)> keys;
  for (const SharedSetting& setting : kSharedSettings) {
    const bool of_text = setting.equal(spec, text), of_file = setting.equal(spec, file);
    const size_t source = of_text ? (of_file ? 0 : 1) : (of_file ? 2 : 3);
    keys[source] += fmt::format("{}{}", keys[source].empty() ? "" : ", ", setting.key);
  }
  std::string sentences;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].empty()) continue;
    sentences += fmt::format("{}{}: {}.", sentences.empty() ? "" : " ", kSources[i], keys[i]);
  }
  return sentences;
}

}  // namespace godwit
