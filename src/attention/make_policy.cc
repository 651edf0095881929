#include "attention/make_policy.h"

#include <array>
#include <utility>

#include "attention/policies/blocks.h"
#include "attention/policies/dense.h"
#include "attention/policies/near_on_gpu.h"
#include "attention/policies/prefill.h"
#include "attention/policies/prefill_spec.h"
#include "attention/policies/sinks.h"
#include "attention/ranks/choose_prefill.h"
#include "attention/ranks/place_text.h"
#include "base/error.h"
#include "base/machine_memory.h"

namespace godwit {
namespace {

constexpr std::array kPolicies = {
    PolicyKind{.name = "dense",
               .usage = "dense",
               .description = "keep every token (full attention)",
               .tight_example = "dense",
               .ample_example = "dense",
               .make = MakeDensePolicy},
    PolicyKind{.name = "window",
               .usage = "window:W",
               .description = "keep the last W tokens; most models fail without the first tokens",
               .tight_example = "window:5",
               .ample_example = "window:4096",
               .make = MakeWindowPolicy},
    PolicyKind{.name = "sinks",
               .usage = "sinks:S+W[,pin=N]",
               .description = "keep the first S and the last W tokens, in constant memory "
                              "(StreamingLLM); pin=N keeps the first N tokens as well",
               .tight_example = "sinks:2+5",
               .ample_example = "sinks:4+4096",
               .make = MakeSinksPolicy},
    PolicyKind{
        .name = "blocks",
        .usage = "blocks:KEY=VALUE,...",
        .description =
            "keep every token; question and answer read only the blocks that score highest; "
            "presets are blocks, blocks:infllm, blocks:ktransformers, blocks:ktransformers-yaml, "
            "blocks:meanstd, blocks:quest, blocks:snapkv and blocks:snapkv-tokens",
        .tight_example = "blocks:initial=0,local_windows_len=1,second_block_count=1",
        .ample_example = "blocks:second_block_count=1024",
        .other_examples = {"blocks:initial=0,local_windows_len=1,second_block_count=1,"
                           "head_select_mode=SHARED,representative_type=MEANSTD",
                           "blocks:initial=0,local_windows_len=1,second_block_count=1,"
                           "token_step=5,layer_step=2",
                           "blocks:initial=0,local_windows_len=1,second_block_count=1,"
                           "preselect_block_count=1,observation_window=7,"
                           "preselect_block=True",
                           "blocks:initial=0,local_windows_len=1,second_block_count=1,"
                           "group_blocks=1,group_count=1",
                           "blocks:initial=0,local_windows_len=1,second_block_count=1,"
                           "group_blocks=1,group_count=1,representative_type=QUEST",
                           "blocks:initial=0,local_windows_len=1,second_block_count=2,"
                           "top_p=0.4",
                           "blocks:initial=0,local_windows_len=1,second_block_count=1,"
                           "representative_num=2,representative_type=DYNAMIC",
                           "blocks:initial=0,local_windows_len=64,second_block_count=1,"
                           "observation_window=21,representative_type=DYNAMIC",
                           "blocks:initial=0,local_windows_len=1,second_block_count=1,"
                           "estimate=True",
                           "blocks:block_size=8,initial=3,local_windows_len=64,"
                           "second_block_count=2,representative_num=2,representative_type=DYNAMIC",
                           "blocks:block_size=1,initial=3,local_windows_len=5,"
                           "second_block_count=9,preselect_block_count=20,observation_window=7,"
                           "preselect_block=True,representative_type=MEAN",
                           "blocks:block_size=16,initial=3,local_windows_len=5,"
                           "second_block_count=2,preselect_block_count=3,observation_window=7,"
                           "preselect_block=True,preselect_votes=True,dense_question=True,"
                           "head_select_mode=SHARED,representative_type=MEAN"},
        .make = MakeBlocksPolicy},
};

std::unique_ptr<AttentionPolicy> MakeKind(const AttentionGeometry& geometry,
                                          const PolicyOptions& options) {
  const std::string_view spec = options.spec;
  const size_t colon = spec.find(':');
  for (const PolicyKind& kind : kPolicies) {
    if (kind.name != spec.substr(0, colon)) continue;
    return kind.make(geometry, options,
                     colon == std::string_view::npos ? "" : spec.substr(colon + 1));
  }
  std::string usages;
  for (const PolicyKind& kind : kPolicies) {
    usages += fmt::format("{}{} ({})", usages.empty() ? "" : ", ", kind.usage, kind.description);
  }
  Throw(ErrorKind::kInput, "unknown KV policy \"{}\"; there are: {}", spec, usages);
}

// The model's index chooses among all keys of the text, and was trained to.
void RefuseBesideIndex(const AttentionGeometry& geometry, const PolicyOptions& options,
                       const AttentionPolicy& policy) {
  const bool dense = policy.facts().name == "dense";
  if (dense && (options.prefill.empty() || options.prefill == kAutoPrefill)) return;
  Throw(ErrorKind::kUnsupported,
        "this model itself chooses the {} keys that a token sees, among all keys of the text, so "
        "{} \"{}\" cannot choose, too: use the KV policy dense without a prefill",
        geometry.key_index->best, dense ? "the prefill" : "the KV policy",
        dense ? options.prefill : options.spec);
}

}  // namespace

std::span<const PolicyKind> AllPolicies() { return kPolicies; }

std::unique_ptr<AttentionPolicy> MakePolicy(const AttentionGeometry& geometry,
                                            const PolicyOptions& options) {
  return MakePlacedPolicy(geometry, options).policy;
}

PlacedPolicy MakePlacedPolicy(const AttentionGeometry& geometry, const PolicyOptions& options) {
  if (options.int8_products && !HasIntegers(options.kv_type)) {
    ThrowWith({ErrorCode::kNeedsInt8Kv}, ErrorKind::kInput,
              "int8 attention needs keys and values stored as int8, found {}",
              Name(options.kv_type));
  }
  if (geometry.learned_positions != 0 && options.context > geometry.learned_positions) {
    Throw(ErrorKind::kInput,
          "a context of {} tokens is too long for this model, which has learned positions for {} "
          "tokens",
          options.context, geometry.learned_positions);
  }
  if (geometry.layers == 0) {
    Throw(ErrorKind::kUnsupported,
          "this model has no layer with attention, and godwit runs models that have some");
  }
  auto policy = MakeKind(geometry, options);
  if (geometry.key_index) RefuseBesideIndex(geometry, options, *policy);
  if (options.gpu_window != 0) {
    policy = MakeNearOnGpu(geometry, options.gpu_window, options.kv_type, std::move(policy));
  }
  PolicyOptions chosen = options;
  chosen.prefill = ChoosePrefill(geometry, options, policy->facts(), options.context);
  // A ring is no way of reading: a token sees and gets the same as on one rank.
  if (!chosen.prefill.empty() && ParsePrefill(chosen.prefill).ring == 0) {
    policy = MakePrefillPolicy(geometry, chosen.prefill, options.kv_type, std::move(policy));
  }
  PolicyFacts facts = policy->facts();
  TextPlacement placement = PlaceText(geometry, chosen, facts);
  policy->Restate(std::move(facts));
  return {.policy = std::move(policy), .placement = std::move(placement)};
}

PolicyFacts PolicyFactsOf(const std::string& spec) {
  AttentionGeometry smallest;
  smallest.layers = 1;
  smallest.shape = {.heads = 1, .kv_heads = 1, .head_dim = 1, .scale = 1};
  smallest.windows = {0};
  return MakePolicy(smallest, {.spec = spec, .context = 1})->facts();
}

bool CanBeStored(const AttentionGeometry& geometry, DType kv_type) {
  return !geometry.shape.values_from || !HasNarrowValues(kv_type);
}

KvLayout LayoutOf(const AttentionGeometry& geometry, DType kv_type) {
  if (!CanBeStored(geometry, kv_type)) {
    Throw(ErrorKind::kUnsupported,
          "this model's keys contain its values (latent attention), so they cannot be stored in 4 "
          "bits: use a KV cache of int8");
  }
  KvLayout layout{.layers = geometry.layers + geometry.predicting,
                  .kv_heads = geometry.shape.kv_heads,
                  .head_dim = geometry.shape.head_dim,
                  .dtype = kv_type,
                  .values_in_keys = geometry.shape.values_from.has_value(),
                  .index_dim = geometry.key_index ? geometry.key_index->head_dim : 0,
                  .states = geometry.states};
  // The score cap bends the sum of a query's products with a key and its centre, not each product.
  layout.centred = layout.hadamard() && geometry.key_means && geometry.shape.score_cap == 0;
  std::vector<KvHeads> heads;
  for (const ops::AttentionShape& shape : geometry.layer_shapes) {
    heads.push_back({.kv_heads = shape.kv_heads, .head_dim = shape.head_dim});
  }
  if (heads.empty() && !geometry.predicting_shape) {
    std::vector<bool> has_index = geometry.has_index;
    if (has_index.empty()) return layout;
    has_index.resize(layout.layers, true);
    layout.PlaceIndexes(has_index);
    return layout;
  }
  heads.resize(geometry.layers, {.kv_heads = layout.kv_heads, .head_dim = layout.head_dim});
  const ops::AttentionShape& predicting = geometry.ShapeOf(geometry.layers);
  heads.resize(layout.layers, {.kv_heads = predicting.kv_heads, .head_dim = predicting.head_dim});
  layout.PlaceLayers(heads);
  return layout;
}

std::string ExplainStates(const AttentionGeometry& geometry) {
  const StateLayout& states = geometry.states;
  if (states.layers == 0) return "";
  return fmt::format(
      "{} layers of the model are recurrent: they remember the whole text in states of {}, "
      "whatever "
      "its length and whatever this policy says to the {} layers with attention.",
      states.layers, FormatBytes(states.state_bytes()), geometry.layers);
}

std::unique_ptr<TextCache> MakeTextCache(const AttentionGeometry& geometry,
                                         const PolicyOptions& options,
                                         std::shared_ptr<KvPool> pool) {
  auto [policy, placement] = MakePlacedPolicy(geometry, options);
  if (pool == nullptr) pool = std::make_shared<KvPool>(LayoutOf(geometry, options.kv_type));
  // A text without an end has no length on which frequencies could depend.
  const int64_t context = policy->facts().endless() ? 0 : options.context;
  return std::make_unique<TextCache>(geometry, std::move(policy), std::move(pool), context,
                                     options.int8_products, std::move(placement), options.ranks);
}

}  // namespace godwit
