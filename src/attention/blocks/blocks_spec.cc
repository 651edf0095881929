#include "attention/blocks/blocks_spec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <optional>
#include <set>

#include "attention/blocks/blocks_presets.h"
#include "attention/core/token_count.h"
#include "base/error.h"
#include "base/quote.h"
#include "ops/blocks/represent_group.h"

namespace godwit {
namespace {

struct Count {
  std::string_view key;
  int64_t BlocksSpec::*value;
};
constexpr Count kCounts[] = {{"block_size", &BlocksSpec::block_size},
                             {"initial", &BlocksSpec::initial},
                             {"local_windows_len", &BlocksSpec::local_windows_len},
                             {"second_block_count", &BlocksSpec::second_block_count},
                             {"dense_layer_num", &BlocksSpec::dense_layer_num},
                             {"token_step", &BlocksSpec::token_step},
                             {"layer_step", &BlocksSpec::layer_step},
                             {"least_block_count", &BlocksSpec::least_block_count},
                             {"preselect_block_count", &BlocksSpec::preselect_block_count},
                             {"pool_tokens", &BlocksSpec::pool_tokens},
                             {"observation_window", &BlocksSpec::observation_window},
                             {"representative_num", &BlocksSpec::representative_num},
                             {"group_blocks", &BlocksSpec::group_blocks},
                             {"group_count", &BlocksSpec::group_count}};
constexpr std::string_view kHeadSelectMode = "head_select_mode";
constexpr std::string_view kRepresentativeType = "representative_type";
constexpr std::array<std::string_view, 2> kModes = {"SHARED", "SEPARATE"};
struct Flag {
  std::string_view key;
  bool BlocksSpec::*value;
};
constexpr Flag kFlags[] = {{"preselect_block", &BlocksSpec::preselect_block},
                           {"preselect_votes", &BlocksSpec::preselect_votes},
                           {"dense_question", &BlocksSpec::dense_question},
                           {"estimate", &BlocksSpec::estimate},
                           {"gradual", &BlocksSpec::gradual},
                           {"sum_scores", &BlocksSpec::sum_scores}};
constexpr std::array<std::string_view, 2> kTruth = {"False", "True"};
constexpr std::string_view kTopP = "top_p";

std::string Names(const auto& list, auto name_of) {
  std::string names;
  for (const auto& entry : list) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(entry));
  }
  return names;
}

[[noreturn]] void RefuseValue(std::string_view key, const std::string& expected,
                              std::string_view found) {
  Throw(ErrorKind::kInput, "the KV policy blocks: {} is {}, not {}", key, expected, Quote(found));
}

void SetKey(BlocksSpec& spec, std::string_view key, std::string_view value) {
  for (const Count& count : kCounts) {
    if (count.key != key) continue;
    const auto number = ParseTokenCount(value);
    if (!number) RefuseValue(key, "a whole number up to 2^40", value);
    spec.*count.value = *number;
    return;
  }
  if (key == kHeadSelectMode) {
    if (value != kModes[0] && value != kModes[1]) RefuseValue(key, "SHARED or SEPARATE", value);
    spec.separate = value == kModes[1];
    return;
  }
  for (const Flag& flag : kFlags) {
    if (flag.key != key) continue;
    if (value != kTruth[0] && value != kTruth[1]) RefuseValue(key, "True or False", value);
    spec.*flag.value = value == kTruth[1];
    return;
  }
  if (key == kTopP) {
    const char* const end = value.data() + value.size();
    const auto [rest, error] = std::from_chars(value.data(), end, spec.top_p);
    if (error != std::errc() || rest != end || !(spec.top_p > 0 && spec.top_p <= 1)) {
      RefuseValue(key, "a share above 0 and at most 1", value);
    }
    return;
  }
  if (key == kRepresentativeType) {
    for (const ops::RepresentativeKind& kind : ops::kRepresentatives) {
      if (kind.name != CanonicalRepresentative(value)) continue;
      spec.representative_type = kind.type;
      return;
    }
    RefuseValue(key, "one of " + Names(ops::kRepresentatives, [](auto& kind) { return kind.name; }),
                value);
  }
  Throw(ErrorKind::kInput, "the KV policy blocks has no setting {}; there are: {}, {}, {}, {}, {}",
        Quote(key), Names(kCounts, [](auto& count) { return count.key; }), kTopP,
        Names(kFlags, [](auto& flag) { return flag.key; }), kHeadSelectMode, kRepresentativeType);
}

void SetPreset(BlocksSpec& spec, std::string_view name) {
  for (const BlocksPreset& preset : BlocksPresets()) {
    if (preset.name == name) return preset.apply(spec);
  }
  Throw(ErrorKind::kInput,
        "the KV policy blocks:PRESET has no preset {}; there are: {}, and settings are KEY=VALUE",
        Quote(name), Names(BlocksPresets(), [](auto& preset) { return preset.name; }));
}

void Require(bool holds, std::string_view what, int64_t found) {
  if (!holds) Throw(ErrorKind::kInput, "the KV policy blocks: {}, not {}", what, found);
}

void Check(const BlocksSpec& spec) {
  constexpr int64_t kMaxTokens = int64_t{1} << 40;
  const bool below_tiles = spec.block_size >= 1 && spec.block_size < kTileTokens;
  Require(below_tiles ? kTileTokens % spec.block_size == 0
                      : spec.block_size % kTileTokens == 0 && spec.block_size >= kTileTokens &&
                            spec.block_size <= 4096,
          "block_size is 1, 2, 4, 8, 16, 32 or a multiple of 64 tokens, up to 4096",
          spec.block_size);
  Require(spec.local_windows_len >= 1, "local_windows_len is at least 1, the token itself",
          spec.local_windows_len);
  Require(spec.second_block_count >= 1,
          "second_block_count is at least 1 (without blocks, use sinks:S+W)",
          spec.second_block_count);
  Require(spec.second_block_count <= kMaxTokens / spec.block_size,
          "second_block_count blocks have at most 2^40 tokens", spec.second_block_count);
  Require(spec.token_step >= 1, "token_step is at least 1 (1: each token chooses for itself)",
          spec.token_step);
  Require(spec.layer_step >= 1, "layer_step is at least 1 (1: each layer chooses for itself)",
          spec.layer_step);
  Require(spec.least_block_count >= 1 && spec.least_block_count <= spec.second_block_count,
          "least_block_count is at least 1 and at most second_block_count", spec.least_block_count);
  Require(spec.preselect_block_count >= 1 || !spec.preselect_block,
          "preselect_block_count is at least 1 (preselect_block=False turns it off)",
          spec.preselect_block_count);
  Require(spec.pool_tokens <= 4096, "pool_tokens is at most 4096", spec.pool_tokens);
  Require(spec.observation_window >= 1 && spec.observation_window <= 4096,
          "observation_window is 1 to 4096 tokens", spec.observation_window);
  Require(spec.group_blocks <= 1024, "group_blocks is at most 1024, or 0 for no groups",
          spec.group_blocks);
  Require(spec.group_count >= 1, "group_count is at least 1", spec.group_count);
  const bool by_other_means = spec.preselect_block || spec.top_p < 1 || spec.group_blocks > 0;
  if (by_other_means && (spec.gradual || spec.sum_scores)) {
    Throw(ErrorKind::kInput,
          "the KV policy blocks: gradual and sum_scores compare the representatives of all blocks: "
          "leave out preselect_block, top_p and group_blocks");
  }
  Require(spec.token_step > 1 || !spec.gradual,
          "gradual replaces blocks of a choice that tokens share: token_step is above 1",
          spec.token_step);
  Require(!below_tiles || spec.group_blocks == 0,
          "group_blocks needs a block_size of at least 64 tokens", spec.block_size);
  Require(!below_tiles || !spec.estimate, "estimate needs a block_size of at least 64 tokens",
          spec.block_size);
  Require(!below_tiles || spec.representative_type != ops::RepresentativeType::kSign,
          "representative_type=SIGN needs a block_size of at least 64 tokens", spec.block_size);
  Require(!below_tiles || spec.representative_type != ops::RepresentativeType::kDynamic ||
              spec.local_windows_len >= kTileTokens,
          "representative_type=DYNAMIC with such blocks needs a local_windows_len of at least 64 "
          "tokens, whose last ones observe",
          spec.local_windows_len);
  const int64_t vectors = ops::VectorsOf(spec.representative_type);
  const ops::BlockShape shape = spec.Shape();
  if (shape.signs()) {
    Require(shape.parts == spec.block_size,
            "representative_num equals block_size with representative_type=SIGN, which keeps one "
            "for every token",
            spec.representative_num);
    return;
  }
  Require(spec.representative_num % vectors == 0 && shape.parts >= 1 &&
              shape.parts <= kTileTokens && std::has_single_bit(static_cast<uint64_t>(shape.parts)),
          vectors == 2
              ? "representative_num is 2 (a part has a centre and a spread), 4, 8, 16, 32, "
                "64 or 128 with this representative_type"
              : "representative_num is 1, 2, 4, 8, 16, 32 or 64 with this "
                "representative_type",
          spec.representative_num);
  Require(shape.parts <= spec.block_size, "a block has no more representatives than tokens",
          spec.representative_num);
}

}  // namespace

ops::BlockShape BlocksSpec::Shape() const {
  constexpr int64_t kPartTokens = 16;
  const bool signs = representative_type == ops::RepresentativeType::kSign;
  int64_t parts = representative_num / ops::VectorsOf(representative_type);
  if (representative_num == 0) {
    const auto whole = static_cast<uint64_t>(std::max<int64_t>(1, block_size / kPartTokens));
    parts = signs ? block_size : std::min(kTileTokens, static_cast<int64_t>(std::bit_floor(whole)));
  }
  return {.type = representative_type, .tokens = block_size, .parts = parts};
}

int64_t BlocksSpec::stretch() const {
  constexpr int64_t kMaxTokens = 4096;
  const int64_t unit = std::max(block_size, kTileTokens);
  return std::max<int64_t>(1, std::min(local_windows_len, kMaxTokens) / unit) * unit;
}

ops::BlockShape BlocksSpec::GroupShape() const {
  return {
      .type = ops::GroupType(representative_type), .tokens = group_blocks * block_size, .parts = 1};
}

std::string BlocksSpec::ToString() const {
  const BlocksSpec preset;
  std::string text = "blocks";
  const auto add = [&](std::string_view key, const auto& value) {
    text += fmt::format("{}{}={}", text == "blocks" ? ":" : ",", key, value);
  };
  for (const auto& [key, value] : kCounts) {
    if (this->*value != preset.*value) add(key, this->*value);
  }
  if (top_p != preset.top_p) add(kTopP, top_p);
  for (const auto& [key, value] : kFlags) {
    if (this->*value != preset.*value) add(key, kTruth[this->*value ? 1 : 0]);
  }
  if (separate != preset.separate) add(kHeadSelectMode, kModes[separate ? 1 : 0]);
  if (representative_type != preset.representative_type) {
    for (const ops::RepresentativeKind& kind : ops::kRepresentatives) {
      if (kind.type == representative_type) add(kRepresentativeType, kind.name);
    }
  }
  return text;
}

std::string BlocksSpec::Explain() const {
  const int64_t part = Shape().part_tokens();
  std::string representative;
  for (const ops::RepresentativeKind& kind : ops::kRepresentatives) {
    if (kind.type == representative_type) representative = kind.description;
  }
  const auto counted = [](int64_t count, std::string_view noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
  };
  std::string every = part == 1 ? "token" : counted(part, "token");
  if (representative_type == ops::RepresentativeType::kDynamic) {
    representative +=
        fmt::format(" from the last {} of every {} tokens, {}",
                    std::min(observation_window, stretch()), stretch(), Shape().parts);
    every = "block";
  }
  std::string more;
  if (top_p < 1) {
    more +=
        fmt::format(" Of these, it sees only those that get {} of its attention, but at least {}.",
                    top_p, least_block_count);
  }
  if (preselect_block) {
    const std::string chosen =
        preselect_votes
            ? fmt::format(
                  "get most votes from the last {} tokens of the prompt, counted with those "
                  "of {} on either side",
                  observation_window, counted(PoolTokens(), "token"))
            : fmt::format("score highest for the last {} tokens of the question",
                          observation_window);
    more += fmt::format(
        " The answer chooses among the {} blocks that {}, and blocks that leave the window later.",
        preselect_block_count, chosen);
  }
  if (group_blocks > 0) {
    const std::string groups = counted(group_blocks, "block");
    more += representative_type == ops::RepresentativeType::kQuest
                ? fmt::format(" Groups of {} that can hold none of them are skipped.", groups)
                : fmt::format(" They are searched in the {} groups of {} that score highest.",
                              group_count, groups);
  }
  if (estimate) {
    more +=
        " The other blocks are estimated: each counts as its number of tokens with its mean key "
        "and mean value.";
  }
  if (gradual) {
    more +=
        " A token that shares a choice sees one of these less for each block that has left the "
        "window since, the least important first.";
  }
  if (sum_scores) more += " Heads that choose together add their scores up.";
  if (dense_layer_num > 0) {
    more += fmt::format(" The first {} layers see all tokens.", dense_layer_num);
  }
  return fmt::format(
      "Every token is kept. The context {}read with full attention. A token of {}the answer sees "
      "{}the last {} tokens, in whole blocks of {}, and the {} blocks between that "
      "score highest for it. {}, {}, by {} of every {}.{}",
      dense_question ? "and the question are " : "is ", dense_question ? "" : "the question or ",
      initial > 0 ? fmt::format("the first {} and ", initial) : "", local_windows_len, block_size,
      second_block_count,
      separate ? "Each KV head chooses for itself" : "All heads choose together",
      layer_step == 1 && token_step == 1
          ? "in every layer"
          : fmt::format("once for {} and {}", counted(layer_step, "layer"),
                        counted(token_step, "token")),
      representative, every, more);
}

BlocksSpec ParseBlocksSpec(std::string_view arguments) {
  BlocksSpec spec;
  std::set<std::string_view> given;
  for (bool more = !arguments.empty(), first = true; more; first = false) {
    const size_t comma = arguments.find(',');
    const std::string_view setting = arguments.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) arguments.remove_prefix(comma + 1);
    const size_t equals = setting.find('=');
    if (equals == std::string_view::npos) {
      SetPreset(spec, setting);
      if (!first) {
        Throw(ErrorKind::kInput, "the KV policy blocks: the preset {} comes before all settings",
              setting);
      }
      continue;
    }
    const std::string_view key = CanonicalBlocksKey(setting.substr(0, equals));
    SetKey(spec, key, setting.substr(equals + 1));
    if (!given.insert(key).second) {
      Throw(ErrorKind::kInput, "the KV policy blocks: {} is given twice", key);
    }
  }
  const bool has_type = given.contains(kRepresentativeType);
  if (!has_type && spec.block_size < kTileTokens &&
      spec.representative_type == ops::RepresentativeType::kSign) {
    spec.representative_type = ops::RepresentativeType::kMean;
  }
  Check(spec);
  return spec;
}

}  // namespace godwit
