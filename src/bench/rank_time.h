// The time that several hosts would take over a context: a model, not a measurement.
//
// The work of a host is counted, in multiply-adds with weights and with keys and values apart. It
// takes the time that one host was measured to take. Sent bytes are counted, and take what the
// network is said to take. All hosts wait for the slowest one, and for data that is late.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "attention/make_policy.h"
#include "bench/suite.h"
#include "model/model_tensors.h"
#include "model/spec.h"

namespace godwit::bench {

constexpr int kMaxHosts = 4096;

// The network between any two hosts, in both directions at once.
struct Network {
  double bytes_per_second;
  double seconds;  // the delay of an empty message
};

// Seconds that a host takes.
struct HostTimes {
  double per_matrix_multiply_add;     // with weights, for a prompt
  double per_attention_multiply_add;  // with keys and values, for a prompt
  std::optional<double> per_token;    // of an answer, at any depth
  double per_kv_byte = 0;             // for bytes that an answer reads
  double worst_error = 0;             // the largest in a test, as a share of its time
};

// Throws Error(kInput): one host's times do not tell matrices and attention apart.
[[noreturn]] void RefuseOneDepth();

// Fits by least squares of the relative errors. Throws Error(kInput) without prompts at two depths.
// Answers that were not measured at two depths are left out.
HostTimes FitHost(const DecoderSpec& spec, std::span<const TestResult> tests);

struct ContextTime {
  double read_seconds;
  double wait_seconds;  // the part that waits for keys of other hosts
  // Bytes that all hosts together send in a layer, for a token of the context and of the answer.
  double read_bytes;
  double answer_bytes;
  std::optional<double> answer_seconds;  // for each token
};

// Times of a context that so many hosts read by `prefill` (attention/policies/prefill_spec.h),
// shared out as their policies do, and answered with dense attention. Nothing: it is too short for
// them. Throws what MakePolicy does.
std::optional<ContextTime> TimeOf(const DecoderSpec& spec, const KvLayout& layout,
                                  const std::string& prefill, int64_t context, int hosts,
                                  const HostTimes& times, const Network& network);

// The same for hosts that share the weights: each reads the whole context, with its part of them.
struct SharedWeightsTime {
  int64_t weight_bytes;  // of the host with most of them
  ContextTime time;
};

// The steps have `chunk_tokens` rows. Tokens of a mixture are taken to meet the experts of all
// hosts alike. storage: as LoadDecoder takes it. Throws as TakeShare does (model/weight_share.h).
SharedWeightsTime TimeOfSharedWeights(const DecoderSpec& spec, const ModelTensors& tensors,
                                      std::optional<DType> storage, const KvLayout& layout,
                                      int64_t context, int64_t chunk_tokens, int hosts,
                                      const HostTimes& times, const Network& network);

}  // namespace godwit::bench
