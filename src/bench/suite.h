// The measurement behind `godwit bench`: tests as llama-bench names them, in rounds.
//
// A round runs every test once, so that compared tests see the same minutes of a shared machine.
// The limits of a test are measured just before it, every time. The report gives the median over
// the rounds.
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
#include "ops/profile.h"

namespace godwit::bench {

struct TestCase {
  int64_t prompt_tokens = 0;   // read together
  int64_t predict_tokens = 0;  // or read one by one, as generated text
  int64_t depth_tokens = 0;    // in the cache before
  int threads = 1;
  int64_t texts = 1;  // continued at once, each at that depth; 1 for a prompt

  int64_t tokens() const { return prompt_tokens + predict_tokens; }  // one of the two is 0
  std::string Label() const;                                         // "tg128 np8 @ d16384"
};

struct SuiteOptions {
  std::vector<TestCase> cases;
  PolicyOptions policy;  // .context is set here
  // All ranks, which run the same suite together; null: this process is alone. Those that share
  // texts are policy.ranks, and those that share weights are the model's.
  std::shared_ptr<Communicator> ranks = {};
  std::shared_ptr<KvPool> kv_pool = {};  // for model and policy.kv_type; null: as memory allows
  int64_t chunk_tokens = 512;            // tokens of a prompt in a step
  const kernels::Isa* isa = nullptr;
  Probe* probe = nullptr;  // null: speeds without limits
  std::function<double()> now_ms = [watch = Stopwatch()] { return watch.ms(); };
  Numa numa = Numa::kNone;
  int64_t rounds = 5;
  bool fill_kv = false;  // whether a depth is filled (kv_fill.h), not read
  bool warm_up = true;
  bool profile = false;  // whether the time of each part is measured, too
  // The callback after every test, in tests done and to be done. After the first round it also gets
  // the time that the others should take.
  //
  // Ranks measure each its part. With policy.ranks they read a prompt at no depth as a context,
  // except its last token, which asks about it. Tokens behind a depth ask about the depth.
  std::function<void(int64_t done, int64_t total, std::optional<double> left_ms)> on_progress;
};

// The time by part of a test's steps, over all rounds.
struct TestProfile {
  ProfileTimes times;
  int64_t steps = 0;
};

enum class LimitKind { kReadBandwidth, kMultiplyPeak };

struct TestResult {
  TestCase test;
  std::vector<double> tokens_per_second;  // [rounds], for all texts together
  // The limit. For a prompt it is multiplying. For a continued text it is reading or multiplying,
  // whichever takes longer by the measured medians.
  LimitKind limit_kind;
  std::string limit_name;  // "read_bandwidth", "f32_peak"; empty without a probe
  // [rounds], or none without a probe: bytes or multiply-adds in a second, and the fraction
  // reached. Fractions are also missing where the limit does not hold, because what a step reads
  // fits_cache.
  std::vector<double> limits;
  std::vector<double> fractions;
  bool fits_cache = false;
  double work_per_token;  // bytes or multiply-adds, on average; for ranks, this one's
  double kv_read_bytes_per_token;
  std::string policy;  // the policy's name for itself
  int64_t kv_bytes;    // of all caches after the test
  // Bytes read from the caches' file, on average in the last round; none: there is no file.
  std::optional<double> file_bytes_per_token;
  // Bytes that cross the bus of a GPU for attention; none: it has no part in that.
  std::optional<double> attention_bus_bytes_per_token = {};
  uint64_t logits_hash;  // of the last token; of the first text, if there are several
  // Whether every round had the same logits, and each of several texts those that it has when read
  // alone. If not, the engine is wrong.
  bool logits_agree = true;
  std::vector<RankUse> ranks = {};          // in the last round; empty: this process is alone
  std::optional<TestProfile> profile = {};  // none: it was not asked for
};

// The limits at a number of threads: medians of what was measured along the way.
struct MachineResult {
  int threads;
  double read_bytes_per_second;
  int64_t read_buffer_bytes;  // the bytes read for that
  double f32_multiply_adds_per_second;
  double bf16_multiply_adds_per_second;  // 0: as f32
  double int8_multiply_adds_per_second;  // 0: as f32
  double fork_join_us;
};

struct SuiteResult {
  std::vector<TestResult> tests;
  // One for every number of threads; none without a probe.
  std::vector<MachineResult> machine;
  int64_t cache_bytes = 0;  // of the last cache; 0 without a probe
};

SuiteResult RunSuite(const Decoder& model, const SuiteOptions& options);

}  // namespace godwit::bench
