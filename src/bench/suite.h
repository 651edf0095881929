// The measurement behind `godwit bench`: tests as llama-bench names them, in rounds.
//
// A round runs every test once, so that tests whose speeds are compared see the same minutes of a
// shared machine; the limits that a test is held against are measured just before it, every time.
// What is reported is the median over the rounds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attention/make_policy.h"
#include "base/numa.h"
#include "base/stopwatch.h"
#include "bench/machine.h"
#include "bench/ranks_watch.h"
#include "kernels/dispatch.h"
#include "model/decoder.h"

namespace godwit::bench {

struct TestCase {
  int64_t prompt_tokens = 0;   // read together, or
  int64_t predict_tokens = 0;  // read one by one, as a text that is being generated
  int64_t depth_tokens = 0;    // that are in the cache before
  int threads = 1;
  int64_t texts = 1;  // that are continued at once, each of that depth; of a prompt 1

  int64_t tokens() const { return prompt_tokens + predict_tokens; }  // one of them is 0
  std::string Label() const;                                         // "tg128 np8 @ d16384"
};

struct SuiteOptions {
  std::vector<TestCase> cases;
  PolicyOptions policy;                  // .context is set here
  std::shared_ptr<KvPool> kv_pool = {};  // of the model and policy.kv_type; null: as memory allows
  int64_t chunk_tokens = 512;            // of a prompt
  const kernels::Isa* isa = nullptr;
  Probe* probe = nullptr;  // null: speeds without limits
  std::function<double()> now_ms = [watch = Stopwatch()] { return watch.ms(); };
  Numa numa = Numa::kNone;
  int64_t rounds = 5;
  bool fill_kv = false;  // a depth is filled (kv_fill.h) and not read
  bool warm_up = true;
  // With policy.ranks all ranks run the same suite together, and each measures its part: a prompt
  // at no depth is a context that they read, but for its last token, which asks about it; what
  // comes behind a depth asks about that.
  // After every test, in tests done and to be done; after the first round, also with how long the
  // others should take.
  std::function<void(int64_t done, int64_t total, std::optional<double> left_ms)> on_progress;
};

enum class LimitKind { kReadBandwidth, kMultiplyPeak };

struct TestResult {
  TestCase test;
  std::vector<double> tokens_per_second;  // [rounds], of all texts together
  // What rules is the limit: multiplying, of a prompt; of a text that is continued, whichever of
  // reading and multiplying takes the longer by the medians of what was measured.
  LimitKind limit_kind;
  std::string limit_name;  // "read_bandwidth", "f32_peak"; empty without a probe
  // [rounds], or none without a probe: bytes or multiply-adds in a second, and how much of that.
  // There are no fractions either where the limit does not hold: what a step reads fits_cache.
  std::vector<double> limits;
  std::vector<double> fractions;
  bool fits_cache = false;
  double work_per_token;  // bytes or multiply-adds, on average; of ranks this one's
  double kv_read_bytes_per_token;
  std::string policy;  // as the policy spells itself
  int64_t kv_bytes;    // of the caches after the test
  // Read from the file in which the caches are, on average of the last round; none: there is none.
  std::optional<double> file_bytes_per_token;
  uint64_t logits_hash;  // of the last token; of several texts the first's
  // Whether every round had the same logits, and every one of several texts those that it has when
  // it is read alone. If not, the engine is wrong.
  bool logits_agree = true;
  std::vector<RankUse> ranks = {};  // in the last round; none: this process is alone
};

// Of a number of threads: medians of what was measured along the way.
struct MachineResult {
  int threads;
  double read_bytes_per_second;
  int64_t read_buffer_bytes;  // over which that was measured
  double f32_multiply_adds_per_second;
  double bf16_multiply_adds_per_second;  // 0: as f32
  double int8_multiply_adds_per_second;  // likewise
  double fork_join_us;
};

struct SuiteResult {
  std::vector<TestResult> tests;
  // For every number of threads; none without a probe.
  std::vector<MachineResult> machine;
  int64_t cache_bytes = 0;  // of the last cache; likewise
};

SuiteResult RunSuite(const Decoder& model, const SuiteOptions& options);

}  // namespace godwit::bench
