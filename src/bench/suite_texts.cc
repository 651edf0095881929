#include "bench/suite_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>

#include "attention/core/kv_cost.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/machine_memory.h"

namespace godwit::bench {
namespace {

// The part of a text that ranks share, when the text reaches this length.
int64_t SharedContext(int64_t depth, int64_t length) { return depth > 0 ? depth : length - 1; }

int64_t Sum(int64_t a, int64_t b) { return CheckedAdd(a, b).value_or(INT64_MAX); }

// A page table has 8 bytes for each page of 4096, once for weights in memory and once for their
// file.
constexpr int64_t kBytesPerTableByte = 4096 / 8 / 2;

// About the bytes of the largest step's activations and of the logits of `texts` texts. Counted are
// copies of the residual stream, and twice what the widest layer reads and writes.
int64_t ScratchBytes(const DecoderSpec& spec, const StateLayout& states, int64_t rows,
                     int64_t texts) {
  int64_t widest = 0;
  for (const LayersOfKind& layers : LayersByKind(spec)) {
    const LayerKind& kind = KindOf(spec, layers.first);
    const int64_t experts = std::max<int64_t>(1, kind.mlp.experts_per_token);
    const int64_t mlp = experts * (2 * kind.mlp.intermediate + spec.hidden_size);
    const int64_t mixer = 2 * (spec.heads + kind.kv_heads) * kind.head_dim + 2 * states.row_floats;
    widest = std::max({widest, mlp + 2 * kind.shared_mlp.intermediate, mixer});
  }
  const int64_t floats = rows * (6 * spec.hidden_size + 2 * widest) + texts * spec.vocab_size;
  return floats * int64_t{sizeof(float)};
}

}  // namespace

std::map<int64_t, std::vector<int64_t>> LengthsAtDepths(const SuiteOptions& options) {
  std::map<int64_t, std::vector<int64_t>> lengths;
  for (const TestCase& test : options.cases) {
    std::vector<int64_t>& texts = lengths[test.depth_tokens];
    texts.resize(std::max(texts.size(), static_cast<size_t>(test.texts)));
    for (int64_t& length : std::span(texts).first(test.texts)) {
      length = std::max(length, test.depth_tokens + test.tokens());
    }
  }
  return lengths;
}

int64_t QuestionBegin(const SuiteOptions& options, const TestCase& test) {
  const int64_t length = test.depth_tokens + test.prompt_tokens;
  return options.policy.ranks == nullptr ? length : SharedContext(test.depth_tokens, length);
}

std::shared_ptr<KvPool> PoolFor(const Decoder& model, const SuiteOptions& options) {
  if (options.kv_pool) return options.kv_pool;
  return std::make_shared<KvPool>(LayoutOf(Geometry(model.spec()), options.policy.kv_type),
                                  std::make_shared<KvBudget>(INT64_MAX, model.mapped_bytes()));
}

SuiteMemory MemoryOf(const DecoderSpec& spec, const SuiteOptions& options, int64_t weight_bytes) {
  const KvLayout layout = options.kv_pool ? options.kv_pool->layout()
                                          : LayoutOf(Geometry(spec), options.policy.kv_type);
  const StateLayout states = LayoutOf(Geometry(spec), options.policy.kv_type).states;
  SuiteMemory memory{.weights = weight_bytes};
  if (options.policy.ranks != nullptr) {  // each rank keeps its part of every context, or throws
    for (const TestCase& test : options.cases) {
      PolicyOptions policy_options = options.policy;
      policy_options.context = test.depth_tokens + test.tokens();
      MakePlacedPolicy(Geometry(spec), policy_options)
          .placement.SetQuestion(QuestionBegin(options, test));
    }
  }
  int64_t most_texts = 0;  // in a step
  for (const auto& [depth, lengths] : LengthsAtDepths(options)) {
    PolicyOptions policy_options = options.policy;
    policy_options.context = lengths.front();
    // A policy evicts after the step, in whole tiles.
    auto [policy, placement] = MakePlacedPolicy(Geometry(spec), policy_options);
    const int64_t held =
        CheckedAdd(policy->facts().max_kept_tokens,
                   options.chunk_tokens + TextCache::kMaxRollbackTokens + 2 * kTileTokens)
            .value_or(INT64_MAX);
    for (const int64_t length : lengths) {
      const int64_t index = IndexAt(*policy, layout, length - 1).held_bytes;
      int64_t bytes = layout.BytesFor(std::min(length, held));
      if (options.policy.ranks != nullptr) {
        const int64_t context = SharedContext(depth, length);
        placement.SetQuestion(context);
        policy->SetQuestion({.begin = context, .choosable = placement.choosable()});
        bytes = HeldBytes(*policy, placement, layout, length) - index;
      }
      memory.keys = Sum(memory.keys, bytes);
      memory.index = Sum(memory.index, index);
      memory.states = Sum(memory.states, states.BytesFor(length));
    }
    memory.longest = std::max(memory.longest, lengths.front());
    memory.texts += std::ssize(lengths);
    most_texts = std::max(most_texts, std::ssize(lengths));
  }
  memory.scratch =
      ScratchBytes(spec, states, std::min(options.chunk_tokens, memory.longest), most_texts) +
      Sum(weight_bytes, memory.keys) / kBytesPerTableByte;
  return memory;
}

void CheckMemory(const DecoderSpec& spec, const SuiteOptions& options, int64_t weight_bytes) {
  const SuiteMemory memory = MemoryOf(spec, options, weight_bytes);
  const bool in_file = options.kv_pool && options.kv_pool->file() != nullptr;
  if (in_file) {
    const KvPool& in_memory = *options.kv_pool->in_memory();
    options.kv_pool->Require(memory.keys / options.kv_pool->layout().page_bytes());
    in_memory.Require(Sum(memory.index, memory.states) / in_memory.layout().page_bytes());
  } else if (options.kv_pool) {
    const int64_t all = Sum(Sum(memory.keys, memory.index), memory.states);
    options.kv_pool->Require(all / options.kv_pool->layout().page_bytes());
  }
  const int64_t caches = in_file ? memory.index : Sum(memory.keys, memory.index);
  const int64_t all_bytes = Sum(Sum(memory.weights, caches), Sum(memory.states, memory.scratch));
  std::string parts = FormatBytes(memory.weights) + " of weights";
  if (caches > 0) {
    parts += fmt::format(", {} of {}", FormatBytes(caches), in_file ? "the index" : "KV cache");
  }
  if (memory.states > 0) {
    parts += fmt::format(", {} of states of recurrent layers", FormatBytes(memory.states));
  }
  RequireMemory(all_bytes, "{} and {} of scratch memory ({} of up to {} tokens, in {}) take", parts,
                FormatBytes(memory.scratch),
                memory.texts == 1 ? "a text" : fmt::format("{} texts", memory.texts),
                memory.longest, Name(options.policy.kv_type));
}

}  // namespace godwit::bench
