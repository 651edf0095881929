// How long several hosts would take over a context: a model of the time, not a measurement.
//
// What a host computes is counted, and takes what one host was measured to take: multiply-adds with
// weights and with keys and values apart. What hosts send is counted, too, and takes what the
// network is said to take. All wait for the slowest one, and for what does not come while they
// compute.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "attention/make_policy.h"
#include "bench/suite.h"
#include "model/spec.h"

namespace godwit::bench {

constexpr int kMostHosts = 4096;

// Between any two hosts, in both directions at once.
struct Network {
  double bytes_per_second;
  double seconds;  // until a message without contents has arrived
};

// Seconds that a host takes.
struct HostTimes {
  double per_matrix_multiply_add;     // of a prompt, with weights
  double per_attention_multiply_add;  // of a prompt, with keys and values
  std::optional<double> per_token;    // of an answer, whatever stands before it
  double per_kv_byte = 0;             // that an answer reads
  double worst_error = 0;             // in any test, as a share of its time
};

// Throws Error(kInput): one host's times do not tell matrices and attention apart.
[[noreturn]] void RefuseOneDepth();

// By least squares of the relative errors. Throws Error(kInput) without prompts at two depths. An
// answer is left out where it was not measured at two.
HostTimes FitHost(const DecoderSpec& spec, std::span<const TestResult> tests);

struct ContextTime {
  double read_seconds;
  double wait_seconds;  // of those, for keys of other hosts
  // What all hosts together send in a layer, for a token of the context and for one of the answer.
  double read_bytes;
  double answer_bytes;
  std::optional<double> answer_seconds;  // a token
};

// A context that so many hosts read by `prefill` (attention/policies/prefill_spec.h), shared out as
// their policies do, and answered with dense attention. Nothing: it is too short for them. Throws
// what MakePolicy does.
std::optional<ContextTime> TimeOf(const DecoderSpec& spec, const KvLayout& layout,
                                  const std::string& prefill, int64_t context, int hosts,
                                  const HostTimes& times, const Network& network);

}  // namespace godwit::bench
