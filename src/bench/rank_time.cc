#include "bench/rank_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "attention/core/kv_cost.h"
#include "attention/make_policy.h"
#include "attention/policies/prefill_spec.h"
#include "attention/ranks/ring_layout.h"
#include "base/error.h"
#include "bench/statistics.h"
#include "bench/work.h"
#include "dist/local.h"
#include "model/loader.h"
#include "model/weight_ranks.h"
#include "model/weight_share.h"
#include "ops/attention_state.h"

namespace godwit::bench {
namespace {

// A measured time that should be x[0] * parts[0] + x[1] * parts[1].
struct Equation {
  std::array<double, 2> parts;
  double seconds;
};

// The non-negative x with the least squares of relative errors.
std::array<double, 2> Solve(std::span<const Equation> equations) {
  double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
  for (const auto& [parts, seconds] : equations) {
    const double a = parts[0] / seconds, b = parts[1] / seconds;
    aa += a * a;
    ab += a * b;
    bb += b * b;
    a1 += a;
    b1 += b;
  }
  const double determinant = aa * bb - ab * ab;
  const double x = (a1 * bb - b1 * ab) / determinant, y = (b1 * aa - a1 * ab) / determinant;
  if (x < 0) return {0, b1 / bb};
  if (y < 0) return {a1 / aa, 0};
  return {x, y};
}

double WorstError(std::span<const Equation> equations, std::array<double, 2> x) {
  double worst = 0;
  for (const auto& [parts, seconds] : equations) {
    worst = std::max(worst, std::abs((x[0] * parts[0] + x[1] * parts[1]) / seconds - 1));
  }
  return worst;
}

// Whether the equations differ enough to separate the two parts.
bool AtTwoDepths(std::span<const Equation> equations) {
  const auto share = [](const Equation& one) { return one.parts[1] / one.parts[0]; };
  const auto [least, most] = std::ranges::minmax(equations, {}, share);
  return share(most) > 1.1 * share(least);
}

double AttentionOf(const DecoderSpec& spec, int64_t seen_keys) {
  return static_cast<double>(MultiplyAdds(spec, 0, 0, seen_keys * spec.kv_heads));
}

// The keys of a KV head that rows of a context see, over all layers. --prefill does not change
// layers that have a window or chunks of the model's own.
class SeenKeys {
 public:
  SeenKeys(const DecoderSpec& spec, const std::string& prefill)
      : chunked_(spec.chunked), prefill_(prefill.empty() ? PrefillSpec() : ParsePrefill(prefill)) {
    for (const int64_t window : OfEachLayer(spec, &LayerKind::window)) ++layers_[window];
  }

  int64_t anchor() const { return prefill_.anchor; }

  int64_t By(ops::KvRange rows) const {
    int64_t keys = 0;
    for (const auto& [window, layers] : layers_) {
      for (int64_t row = rows.begin; row < rows.end; ++row) keys += layers * ByRow(row, window);
    }
    return keys;
  }

 private:
  int64_t ByRow(int64_t row, int64_t window) const {
    if (window != 0) {
      const int64_t own = chunked_ ? row % window + 1 : window;
      return std::min({row + 1, own, prefill_.window});
    }
    const int64_t block = prefill_.star() ? row - row % prefill_.block : 0;
    const int64_t near = std::max<int64_t>(0, block - prefill_.overlap);
    return std::min(near, prefill_.anchor) + std::min(row + 1 - near, prefill_.window);
  }

  bool chunked_;
  PrefillSpec prefill_;
  std::map<int64_t, int64_t> layers_;  // key: the window or chunk in tokens; 0: none
};

// The policy and the placement of rank `rank` among `hosts`. Nothing: the context is too short for
// them.
std::optional<PlacedPolicy> PlacedOn(const DecoderSpec& spec, const std::string& prefill,
                                     int64_t context, int rank, int hosts) {
  LocalWorld world(hosts);
  PlacedPolicy placed =
      MakePlacedPolicy(Geometry(spec), {.context = context + 1,
                                        .prefill = prefill,
                                        .ranks = hosts > 1 ? world.Rank(rank) : nullptr});
  auto& [policy, placement] = placed;
  try {
    placement.SetQuestion(context);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput) throw;
    return std::nullopt;
  }
  if (hosts > 1 && placement.merged_from() < context) return std::nullopt;
  policy->SetQuestion({.begin = context, .answer = context, .choosable = placement.choosable()});
  return placed;
}

struct HostWork {
  int64_t own_tokens = 0;  // tokens that it reads and shows to an answer
  double alone_seconds = 0;
  double together_seconds = 0;  // in rounds that all keep, each of which ends with the last host
};

// first: whether this host shows the anchor to an answer.
HostWork WorkOf(const DecoderSpec& spec, const TextPlacement& placement, const SeenKeys& seen,
                int64_t context, bool first, const HostTimes& times) {
  const int64_t kept = placement.kept_by_all();
  HostWork work{.own_tokens = first ? kept : 0};
  for (const ops::KvRange& rows : RangesRead(placement, context)) {
    const double seconds = static_cast<double>(MultiplyAdds(spec, rows.end - rows.begin, 0, 0)) *
                               times.per_matrix_multiply_add +
                           AttentionOf(spec, seen.By(rows)) * times.per_attention_multiply_add;
    if (rows.begin < kept) {
      work.together_seconds += seconds;
      continue;
    }
    work.alone_seconds += seconds;
    work.own_tokens +=
        std::max<int64_t>(0, rows.end - std::max(rows.begin, first ? 0 : seen.anchor()));
  }
  return work;
}

// Adds the waiting time, over all layers and rounds, and the bytes sent, for tokens that all hosts
// read and keep.
void AddAnchor(const DecoderSpec& spec, const RingLayout& ring, int64_t context, double layer_bytes,
               const Network& network, ContextTime& time) {
  const double received =  // by each host, in a layer
      static_cast<double>(ring.context - ring.context / ring.ranks) * layer_bytes;
  time.wait_seconds +=
      static_cast<double>(spec.layers) *
      (static_cast<double>(ring.rounds()) * network.seconds + received / network.bytes_per_second);
  time.read_bytes += received * static_cast<double>(ring.ranks) / static_cast<double>(context);
}

// Adds the waiting time and the bytes sent for tokens of which each host keeps its own.
void AddRing(const DecoderSpec& spec, const SeenKeys& seen, const RingLayout& ring,
             double layer_bytes, const HostTimes& times, const Network& network,
             ContextTime& time) {
  const auto others = static_cast<double>(ring.ranks - 1);
  const auto layers = static_cast<double>(spec.layers);
  double sent_tokens = 0;  // by one host to each other one, in a layer
  int64_t shared = 0;      // by a host so far
  for (int64_t round = 0; round < ring.rounds(); ++round) {
    shared += ring.SharedBy(round);
    sent_tokens += static_cast<double>(shared);
    // The last host sees the most. Its work is spread over the groups that arrive.
    const auto groups = static_cast<double>(round / ring.rounds_in_group() + 1);
    const double compute = AttentionOf(spec, seen.By(ring.Chunk(round, ring.ranks - 1))) *
                           times.per_attention_multiply_add / layers / groups;
    const double fetch = network.seconds + static_cast<double>(shared) / groups * others *
                                               layer_bytes / network.bytes_per_second;
    time.wait_seconds += layers * (fetch + (groups - 1) * std::max(0.0, fetch - compute));
  }
  time.read_bytes = sent_tokens * static_cast<double>(ring.ranks) * others * layer_bytes /
                    static_cast<double>(ring.context);
}

// The weights of a share that a token meets in the layers, on average over tokens. Experts count by
// the part of all that the share has.
double LayerWeightsMet(const WeightShare& share) {
  const DecoderSpec& spec = share.spec;
  auto weights = static_cast<double>(LayerWeights(spec));
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    const MlpSpec& mlp = KindOf(spec, layer).mlp;
    if (mlp.experts == 0) continue;
    const int64_t met =
        mlp.experts_per_token * (mlp.gated ? 3 : 2) * mlp.intermediate * spec.hidden_size;
    const auto held = static_cast<double>(share.tensors.layers[layer].experts.size());
    weights -= static_cast<double>(met) * (1 - held / static_cast<double>(mlp.experts));
  }
  return weights;
}

ExchangeCost Times(int64_t count, const ExchangeCost& cost) {
  return {.bytes = count * cost.bytes, .messages = count * cost.messages};
}

// The exchange of a step of so many rows: a sum for the embedding, and two in every layer. Some
// rows meet the head.
ExchangeCost CostOfStep(const DecoderSpec& spec, int64_t rows, int64_t logit_rows, int hosts) {
  const ExchangeCost sums = Times(2 * spec.layers + 1, CostOfSum(rows, spec.hidden_size, hosts));
  const ExchangeCost logits = CostOfLogits(logit_rows, spec.vocab_size, hosts);
  return {.bytes = sums.bytes + logits.bytes, .messages = sums.messages + logits.messages};
}

double SecondsOf(const ExchangeCost& cost, const Network& network) {
  return static_cast<double>(cost.messages) * network.seconds +
         static_cast<double>(cost.bytes) / network.bytes_per_second;
}

}  // namespace

void RefuseOneDepth() {
  Throw(ErrorKind::kInput,
        "the time of several hosts is estimated from tests of a prompt at two depths: add a large "
        "one to -d, for example -p 512 -n 32 -d 0,32768 --fill-kv");
}

HostTimes FitHost(const DecoderSpec& spec, std::span<const TestResult> tests) {
  std::vector<Equation> prompts, answers;
  for (const TestResult& result : tests) {
    const double tokens_per_second = Median(result.tokens_per_second);
    if (result.test.prompt_tokens > 0) {
      const auto tokens = static_cast<double>(result.test.prompt_tokens);
      const auto matrices =
          static_cast<double>(MultiplyAdds(spec, result.test.prompt_tokens, 1, 0));
      prompts.push_back({.parts = {matrices, result.work_per_token * tokens - matrices},
                         .seconds = tokens / tokens_per_second});
    } else if (result.test.texts == 1) {
      answers.push_back(
          {.parts = {1, result.kv_read_bytes_per_token}, .seconds = 1 / tokens_per_second});
    }
  }
  if (prompts.size() < 2 || !AtTwoDepths(prompts)) RefuseOneDepth();
  const auto prompt = Solve(prompts);
  HostTimes times{.per_matrix_multiply_add = prompt[0],
                  .per_attention_multiply_add = prompt[1],
                  .per_token = {},
                  .worst_error = WorstError(prompts, prompt)};
  if (answers.size() < 2 || !AtTwoDepths(answers)) return times;
  const auto answer = Solve(answers);
  times.per_token = answer[0];
  times.per_kv_byte = answer[1];
  times.worst_error = std::max(times.worst_error, WorstError(answers, answer));
  return times;
}

std::optional<ContextTime> TimeOf(const DecoderSpec& spec, const KvLayout& layout,
                                  const std::string& prefill, int64_t context, int hosts,
                                  const HostTimes& times, const Network& network) {
  const SeenKeys seen(spec, prefill);
  const double layer_bytes =
      static_cast<double>(layout.tile_bytes()) / static_cast<double>(kTileTokens);
  ContextTime time{};
  double kv_bytes = 0;  // most that a host reads for a token of the answer
  double together_seconds = 0;
  for (int host = 0; host < hosts; ++host) {
    const auto placed = PlacedOn(spec, prefill, context, host, hosts);
    if (!placed) return std::nullopt;
    const auto& [policy, placement] = *placed;
    const HostWork work = WorkOf(spec, placement, seen, context, host == 0, times);
    time.read_seconds = std::max(time.read_seconds, work.alone_seconds);
    together_seconds = std::max(together_seconds, work.together_seconds);
    double held = 0;
    for (int64_t layer = 0; layer < spec.layers; ++layer) {
      held += static_cast<double>(std::min(policy->SeenKeys(layer, context), work.own_tokens));
    }
    kv_bytes = std::max(kv_bytes, held * layer_bytes);
    const RingLayout& ring = placement.ring();
    if (host > 0 || ring.context == 0) continue;
    if (ring.kept) {
      AddAnchor(spec, ring, context, layer_bytes, network, time);
    } else {
      AddRing(spec, seen, ring, layer_bytes, times, network, time);
    }
  }
  time.read_seconds += together_seconds + time.wait_seconds;
  const auto others = static_cast<double>(hosts - 1);
  const auto state_bytes =
      static_cast<double>(spec.heads * ops::PackedState(Geometry(spec).shape.value_dim())) *
      double{sizeof(float)};
  time.answer_bytes = static_cast<double>(hosts) * others * state_bytes;
  if (times.per_token) {
    const double merge =
        hosts == 1 ? 0 : network.seconds + others * state_bytes / network.bytes_per_second;
    time.answer_seconds =
        *times.per_token + kv_bytes * times.per_kv_byte + static_cast<double>(spec.layers) * merge;
  }
  return time;
}

SharedWeightsTime TimeOfSharedWeights(const DecoderSpec& spec, const ModelTensors& tensors,
                                      std::optional<DType> storage, const KvLayout& layout,
                                      int64_t context, int64_t chunk_tokens, int hosts,
                                      const HostTimes& times, const Network& network) {
  const auto whole = static_cast<double>(LayerWeights(spec) + HeadWeights(spec));
  const auto tokens = static_cast<double>(context);
  const int64_t seen = SeenKeys(spec, "").By({0, context});
  const auto policy = MakePolicy(Geometry(spec), {.context = context + 1});
  double held = 0;  // keys that a token of the answer sees, over all layers
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    held += static_cast<double>(policy->SeenKeys(layer, context));
  }
  const double key_bytes =
      static_cast<double>(layout.tile_bytes()) / static_cast<double>(kTileTokens);

  SharedWeightsTime shared{};
  double answer_seconds = 0;
  for (int host = 0; host < hosts; ++host) {
    const WeightShare share = TakeShare(spec, tensors, host, hosts);
    shared.weight_bytes = std::max(shared.weight_bytes, LoadedBytes(share.tensors, storage));
    const double layers = LayerWeightsMet(share);
    const double head = static_cast<double>(TokensOf(spec.vocab_size, host, hosts).count()) *
                        static_cast<double>(spec.hidden_size);
    shared.time.read_seconds =
        std::max(shared.time.read_seconds,
                 (tokens * layers + head) * times.per_matrix_multiply_add +
                     AttentionOf(share.spec, seen) * times.per_attention_multiply_add);
    const double keys = static_cast<double>(share.spec.kv_heads) /
                        static_cast<double>(spec.kv_heads) * held * key_bytes;
    answer_seconds =
        std::max(answer_seconds,
                 (layers + head) / whole * times.per_token.value_or(0) + keys * times.per_kv_byte);
  }
  const auto of_all_in_a_layer = [&](const ExchangeCost& cost) {
    return static_cast<double>(hosts * cost.bytes) / static_cast<double>(spec.layers);
  };
  ExchangeCost reading;
  for (int64_t done = 0; done < context; done += chunk_tokens) {
    const int64_t rows = std::min(chunk_tokens, context - done);
    const ExchangeCost step = CostOfStep(spec, rows, done + rows == context ? 1 : 0, hosts);
    reading.bytes += step.bytes;
    reading.messages += step.messages;
  }
  shared.time.wait_seconds = SecondsOf(reading, network);
  shared.time.read_seconds += shared.time.wait_seconds;
  shared.time.read_bytes = of_all_in_a_layer(reading) / tokens;
  const ExchangeCost answer = CostOfStep(spec, 1, 1, hosts);
  shared.time.answer_bytes = of_all_in_a_layer(answer);
  if (times.per_token) shared.time.answer_seconds = answer_seconds + SecondsOf(answer, network);
  return shared;
}

}  // namespace godwit::bench
