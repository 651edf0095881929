#include "bench/suite.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "attention/kv_store.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/machine_memory.h"
#include "base/rng.h"
#include "bench/fnv.h"
#include "bench/kv_fill.h"
#include "bench/statistics.h"
#include "bench/work.h"

namespace godwit::bench {
namespace {

// One endless text for all tests: what stands at a position does not depend on the test. So the
// logits after a prompt of N and after N tokens one by one must agree, to the bit.
std::vector<int32_t> Tokens(const DecoderSpec& spec, int64_t first, int64_t count) {
  std::vector<int32_t> tokens;
  tokens.reserve(static_cast<size_t>(count));
  for (int64_t i = first; i < first + count; ++i) {
    const uint64_t bits = RandomBits(/*seed=*/1, /*sequence=*/0, i, /*draw=*/0);
    tokens.push_back(static_cast<int32_t>(bits % static_cast<uint64_t>(spec.vocab_size)));
  }
  return tokens;
}

// The threads of some tests, with what is known of the machine under them.
struct Team {
  Team(const SuiteOptions& options, int threads, std::string* report)
      : cpus(PlaceThreads(options.numa, threads, report)), pool(threads, cpus) {}

  std::vector<int> cpus;
  ThreadPool pool;
  Workspace workspace;
  int64_t read_buffer_bytes = 0;
  std::vector<double> bandwidths, f32, bf16, int8, fork_joins;
};

// The longest text of the tests at each depth.
std::map<int64_t, int64_t> LongestAtDepths(const SuiteOptions& options) {
  std::map<int64_t, int64_t> longest;
  for (const TestCase& test : options.cases) {
    int64_t& length = longest[test.depth_tokens];
    length = std::max(length, test.depth_tokens + test.tokens());
  }
  return longest;
}

class Suite {
 public:
  Suite(const Decoder& model, const SuiteOptions& options)
      : model_(model), spec_(model.spec()), options_(options), longest_(LongestAtDepths(options)) {
    std::string report;
    for (const TestCase& test : options.cases) {
      if (teams_.contains(test.threads)) continue;
      teams_.emplace(test.threads, std::make_unique<Team>(options, test.threads, &report));
      most_threads_ = std::max(most_threads_, test.threads);
    }
    // After the last look at the CPUs of this process.
    if (options.numa != Numa::kNone) PinThisThread(team(most_threads_).cpus.front());
  }

  SuiteResult Run() {
    std::vector<TestResult> results;
    for (const TestCase& test : options_.cases) {
      results.push_back({.test = test,
                         .limit_kind = test.prompt_tokens > 0 ? LimitKind::kMultiplyPeak
                                                              : LimitKind::kReadBandwidth});
    }
    const auto tests = std::ssize(results);
    const int64_t total = tests * (options_.rounds + (options_.warm_up ? 1 : 0));
    int64_t done = 0;
    const auto count = [&](std::optional<double> left_ms) {
      ++done;
      if (options_.on_progress) options_.on_progress(done, total, left_ms);
    };
    if (options_.warm_up) {
      for (const TestCase& test : options_.cases) {
        WarmUp(test);
        count(std::nullopt);
      }
    }
    std::vector<double> took_ms(results.size());  // in the last round
    for (int64_t round = 0; round < options_.rounds; ++round) {
      double begin_ms = options_.now_ms();  // of the first test: that the machine is measured, too
      if (options_.probe != nullptr) {
        for (auto& [threads, team] : teams_) MeasureMachine(*team);
      }
      for (size_t i = 0; i < results.size(); ++i) {
        RunOnce(results[i]);
        const double end_ms = options_.now_ms();
        took_ms[i] = end_ms - std::exchange(begin_ms, end_ms);
        const auto sum_from = [&](size_t first) {
          return std::accumulate(took_ms.begin() + static_cast<std::ptrdiff_t>(first),
                                 took_ms.end(), 0.0);
        };
        const bool all_known = round > 0 || i + 1 == results.size();
        const auto rounds_left = static_cast<double>(options_.rounds - 1 - round);
        count(all_known ? std::optional(rounds_left * sum_from(0) + sum_from(i + 1))
                        : std::nullopt);
      }
    }
    return {.tests = std::move(results),
            .machine = Machine(),
            .cache_bytes = options_.probe == nullptr ? 0 : options_.probe->CacheBytes()};
  }

 private:
  Team& team(int threads) { return *teams_.at(threads); }

  Exec ExecOf(Team& team) const {
    return {.pool = team.pool, .kernels = *options_.isa->table, .workspace = team.workspace};
  }

  void MeasureMachine(Team& team) {
    const auto keep = [&](DType type, const char* kind, std::vector<double>& rates) {
      const MultiplyPeak peak = options_.probe->PeakOf(team.pool, type);
      if (peak.kind == kind) rates.push_back(peak.per_second);
    };
    keep(DType::kF32, "f32_peak", team.f32);
    keep(DType::kBF16, "bf16_peak", team.bf16);
    keep(DType::kI8, "int8_peak", team.int8);
    team.fork_joins.push_back(options_.probe->ForkJoinMicroseconds(team.pool));
  }

  // The policy whose text is `depth` tokens long, by going back or by growing.
  AttentionPolicy& PolicyAt(int64_t depth) {
    std::unique_ptr<AttentionPolicy>& policy = policies_[depth];
    if (policy != nullptr && policy->CanTruncate(depth)) {
      policy->Truncate(depth);
      return *policy;
    }
    policy.reset();
    PolicyOptions options = options_.policy;
    options.context = longest_.at(depth);
    policy = MakePolicy(Geometry(spec_), options);
    Team& all = team(most_threads_);
    const Exec exec = ExecOf(all);
    if (options_.fill_kv && depth > 0) {
      if (sample_ == nullptr) {
        constexpr int64_t kSampleTokens = 64;
        sample_ = std::make_unique<KvSample>(model_, exec, Tokens(spec_, 0, kSampleTokens));
      }
      sample_->Extend(*policy, exec, depth, options_.policy.max_step_tokens);
    } else {
      ReadTogether(*policy, exec, depth);
    }
    return *policy;
  }

  // The policy's text grows by `count` tokens, in chunks; the logits of the last.
  MatrixView<const float> ReadTogether(AttentionPolicy& policy, const Exec& exec, int64_t count) {
    const std::vector<int32_t> tokens = Tokens(spec_, policy.length(), count);
    logits_.resize(static_cast<size_t>(spec_.vocab_size));
    for (int64_t at = 0; at < count;) {
      const int64_t n =
          std::min({count - at, options_.policy.max_step_tokens, policy.max_step_tokens()});
      Step(policy, exec, std::span(tokens).subspan(static_cast<size_t>(at), static_cast<size_t>(n)),
           at + n == count);
      at += n;
    }
    return LogitsView();
  }

  void ReadOneByOne(AttentionPolicy& policy, const Exec& exec, std::span<const int32_t> tokens) {
    logits_.resize(static_cast<size_t>(spec_.vocab_size));
    for (size_t i = 0; i < tokens.size(); ++i) {
      Step(policy, exec, tokens.subspan(i, 1), /*wants_logits=*/true);
    }
  }

  void Step(AttentionPolicy& policy, const Exec& exec, std::span<const int32_t> tokens,
            bool wants_logits) {
    Workspace::Scope scope(exec.workspace);
    const auto n = std::ssize(tokens);
    const auto hidden = exec.workspace.Matrix<float>(n, model_.hidden_size());
    const Segment segment{tokens, &policy};
    model_.Forward(exec, {&segment, 1}, hidden);
    if (wants_logits) model_.Logits(exec, hidden.Rows(n - 1, n), LogitsView());
  }

  MatrixView<float> LogitsView() { return {logits_.data(), 1, spec_.vocab_size, spec_.vocab_size}; }

  // Scratch memory settles and pages of the weights come in.
  void WarmUp(const TestCase& test) {
    AttentionPolicy& policy = PolicyAt(test.depth_tokens);
    const Exec exec = ExecOf(team(test.threads));
    ReadTogether(policy, exec, std::max<int64_t>(1, test.prompt_tokens));
  }

  void RunOnce(TestResult& result) {
    const TestCase& test = result.test;
    Team& team = this->team(test.threads);
    const Exec exec = ExecOf(team);
    AttentionPolicy& policy = PolicyAt(test.depth_tokens);
    if (options_.probe != nullptr) result.limits.push_back(MeasureLimit(result, team));
    const int64_t kept_before = policy.Stats().kept;

    const std::vector<int32_t> tokens = Tokens(spec_, policy.length(), test.predict_tokens);
    const double begin_ms = options_.now_ms();
    if (test.prompt_tokens > 0) {
      ReadTogether(policy, exec, test.prompt_tokens);
    } else {
      ReadOneByOne(policy, exec, tokens);
    }
    const double seconds = (options_.now_ms() - begin_ms) / 1000;

    const KvStats stats = policy.Stats();
    const double work = Work(test, {kept_before, stats.kept});
    const auto count = static_cast<double>(test.tokens());
    const uint64_t hash = Fnv1a(std::as_bytes(std::span(logits_)));
    if (result.tokens_per_second.empty()) result.logits_hash = hash;
    result.logits_agree &= result.logits_hash == hash;
    result.tokens_per_second.push_back(count / seconds);
    result.work_per_token = work / count;
    result.fits_cache = options_.probe != nullptr &&
                        result.limit_kind == LimitKind::kReadBandwidth &&
                        result.work_per_token <= static_cast<double>(options_.probe->CacheBytes());
    if (options_.probe != nullptr && !result.fits_cache) {
      result.fractions.push_back(work / seconds / result.limits.back());
    }
    result.policy = stats.policy;
    result.kv_bytes = stats.bytes;
  }

  double MeasureLimit(TestResult& result, Team& team) {
    if (result.limit_kind == LimitKind::kReadBandwidth) {
      result.limit_name = "read_bandwidth";
      return MeasureBandwidth(team);
    }
    const MultiplyPeak peak = options_.probe->PeakOf(team.pool, model_.weight_types().layers);
    result.limit_name = peak.kind;
    return peak.per_second;
  }

  double MeasureBandwidth(Team& team) {
    const ReadRate rate = options_.probe->ReadBandwidth(team.pool);
    team.read_buffer_bytes = rate.buffer_bytes;
    return team.bandwidths.emplace_back(rate.bytes_per_second);
  }

  double Work(const TestCase& test, KeptTokens kept) const {
    if (test.prompt_tokens > 0) {
      return static_cast<double>(MultiplyAdds(spec_, kept, test.prompt_tokens, /*logit_rows=*/1));
    }
    return static_cast<double>(test.predict_tokens) * static_cast<double>(model_.step_bytes()) +
           static_cast<double>(
               KvBytesRead(spec_, options_.policy.kv_type, kept, test.predict_tokens));
  }

  std::vector<MachineResult> Machine() {
    std::vector<MachineResult> machine;
    if (options_.probe == nullptr) return machine;
    for (auto& [threads, team] : teams_) {
      if (team->bandwidths.empty()) MeasureBandwidth(*team);  // no test asked
      machine.push_back({.threads = threads,
                         .read_bytes_per_second = Median(team->bandwidths),
                         .read_buffer_bytes = team->read_buffer_bytes,
                         .f32_multiply_adds_per_second = Median(team->f32),
                         .bf16_multiply_adds_per_second = Median(team->bf16),
                         .int8_multiply_adds_per_second = Median(team->int8),
                         .fork_join_us = Median(team->fork_joins)});
    }
    return machine;
  }

  const Decoder& model_;
  const DecoderSpec& spec_;
  const SuiteOptions& options_;
  const std::map<int64_t, int64_t> longest_;  // depth -> tokens
  std::map<int, std::unique_ptr<Team>> teams_;
  int most_threads_ = 0;
  std::map<int64_t, std::unique_ptr<AttentionPolicy>> policies_;  // by depth
  std::unique_ptr<KvSample> sample_;
  std::vector<float> logits_;  // [vocab], of the last token read
};

}  // namespace

std::string TestCase::Label() const {
  std::string label =
      prompt_tokens > 0 ? fmt::format("pp{}", prompt_tokens) : fmt::format("tg{}", predict_tokens);
  if (depth_tokens > 0) label += fmt::format(" @ d{}", depth_tokens);
  return label;
}

void CheckMemory(const DecoderSpec& spec, const SuiteOptions& options, int64_t weight_bytes) {
  int64_t kv_bytes = 0;
  std::string most;
  for (const auto& [depth, length] : LongestAtDepths(options)) {
    PolicyOptions policy_options = options.policy;
    policy_options.context = length;
    // A cache of fixed size says so before it holds anything; another grows with the text.
    const auto policy = MakePolicy(Geometry(spec), policy_options);
    kv_bytes += policy->max_length() == INT64_MAX
                    ? policy->Stats().bytes
                    : PagesFor(length) * kernels::kTileTokens *
                          KvBytesPerToken(Geometry(spec), options.policy.kv_type);
    most = fmt::format("{} tokens", length);
  }
  RequireMemory(CheckedAdd(weight_bytes, kv_bytes).value_or(INT64_MAX),
                "{} of weights and {} of KV cache (up to {}, in {}) take",
                FormatBytes(weight_bytes), FormatBytes(kv_bytes), most,
                Name(options.policy.kv_type));
}

SuiteResult RunSuite(const Decoder& model, const SuiteOptions& options) {
  return Suite(model, options).Run();
}

}  // namespace godwit::bench
