#include "bench/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "base/fnv.h"
#include "base/rng.h"
#include "bench/kv_fill.h"
#include "bench/ranks_watch.h"
#include "bench/statistics.h"
#include "bench/suite_texts.h"
#include "bench/work.h"

namespace godwit::bench {
namespace {

// Endless texts, the same for all tests: the token at a position does not depend on the test. The
// logits after a prompt of N and after N single tokens, alone or among others, must agree to the
// bit.
std::vector<int32_t> Tokens(const DecoderSpec& spec, int64_t text, int64_t first, int64_t count) {
  std::vector<int32_t> tokens;
  tokens.reserve(count);
  for (int64_t i = first; i < first + count; ++i) {
    const uint64_t bits =
        RandomBits(/*seed=*/1, /*sequence=*/static_cast<uint64_t>(text), i, /*draw=*/0);
    tokens.push_back(static_cast<int32_t>(bits % static_cast<uint64_t>(spec.vocab_size)));
  }
  return tokens;
}

// The threads of some tests, with the facts of the machine under them.
struct Team {
  Team(const SuiteOptions& options, int threads, std::string* report)
      : cpus(PlaceThreads(options.numa, threads, report)), pool(threads, cpus) {}

  std::vector<int> cpus;
  ThreadPool pool;
  Workspace workspace;
  int64_t read_buffer_bytes = 0;
  std::vector<double> bandwidths, f32, bf16, int8, fork_joins;
};

// The measurements of one test, round after round.
struct Measurement {
  std::vector<double> seconds;
  std::vector<double> bandwidths;  // bytes per second; not of a prompt
  std::vector<double> peaks;       // multiply-adds per second
  std::string peak_name;
  double bytes = 0;  // read in a round; not of a prompt
  double kv_bytes_read = 0;
  double multiply_adds = 0;
  std::vector<uint64_t> hashes;  // [texts], of each text's last logits
  bool agree = true;
  std::string policy;
  int64_t kv_bytes = 0;
  int64_t file_bytes = 0;  // read in a round
  std::vector<RankUse> ranks;
  std::optional<Profile> profile;
  int64_t steps = 0;  // profiled
};

class Suite {
 public:
  Suite(const Decoder& model, const SuiteOptions& options)
      : model_(model),
        spec_(model.spec()),
        options_(options),
        lengths_(LengthsAtDepths(options)),
        pool_(PoolFor(model, options)) {
    std::string report;
    for (const TestCase& test : options.cases) {
      if (teams_.contains(test.threads)) continue;
      teams_.emplace(test.threads, std::make_unique<Team>(options, test.threads, &report));
      max_threads_ = std::max(max_threads_, test.threads);
    }
    // The thread is pinned after the process's CPUs were last read.
    if (options.numa != Numa::kNone) PinThisThread(team(max_threads_).cpus.front());
  }

  SuiteResult Run() {
    std::vector<Measurement> measurements(options_.cases.size());
    const auto tests = std::ssize(measurements);
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
    std::vector<double> took_ms(measurements.size());  // in the last round
    for (int64_t round = 0; round < options_.rounds; ++round) {
      double begin_ms = options_.now_ms();  // the first test's time includes measuring the machine
      if (options_.probe != nullptr) {
        for (auto& [threads, team] : teams_) MeasureMachine(*team);
      }
      for (size_t i = 0; i < measurements.size(); ++i) {
        grown_ms_ = 0;
        RunOnce(options_.cases[i], measurements[i]);
        const double end_ms = options_.now_ms();
        took_ms[i] = end_ms - std::exchange(begin_ms, end_ms);
        if (StayInDepth(options_.cases[i])) took_ms[i] -= grown_ms_;
        if (round == 0 && options_.cases[i].texts > 1) {
          CompareWithEachAlone(options_.cases[i], measurements[i]);
          begin_ms = options_.now_ms();
        }
        const auto sum_from = [&](size_t first) {
          return std::accumulate(took_ms.begin() + static_cast<std::ptrdiff_t>(first),
                                 took_ms.end(), 0.0);
        };
        const bool all_known = round > 0 || i + 1 == measurements.size();
        const auto rounds_left = static_cast<double>(options_.rounds - 1 - round);
        count(all_known ? std::optional(rounds_left * sum_from(0) + sum_from(i + 1))
                        : std::nullopt);
      }
    }
    SuiteResult result{.machine = Machine(),
                       .cache_bytes = options_.probe == nullptr ? 0 : options_.probe->CacheBytes()};
    for (size_t i = 0; i < measurements.size(); ++i) {
      result.tests.push_back(
          Conclude(options_.cases[i], measurements[i], static_cast<double>(result.cache_bytes)));
    }
    return result;
  }

 private:
  using Texts = std::span<const std::unique_ptr<TextCache>>;

  Team& team(int threads) { return *teams_.at(threads); }

  Exec ExecOf(Team& team) const {
    return {.pool = team.pool,
            .kernels = *options_.isa->table,
            .workspace = team.workspace,
            .observer = &count_weights_};
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

  // The texts of a test at its depth. A prompt is read as context; decoded tokens ask about it.
  Texts TextsFor(const TestCase& test) {
    const Texts texts = TextsAt(test.depth_tokens, test.texts);
    for (const auto& text : texts) text->SetQuestion(QuestionBegin(options_, test));
    return texts;
  }

  // The first `count` texts of `depth` tokens, which go back or grow to that length.
  Texts TextsAt(int64_t depth, int64_t count) {
    std::vector<std::unique_ptr<TextCache>>& texts = texts_[depth];
    texts.resize(std::max(texts.size(), static_cast<size_t>(count)));
    for (int64_t i = 0; i < count; ++i) {
      std::unique_ptr<TextCache>& text = texts[i];
      if (text != nullptr && text->CanTruncate(depth)) {
        text->Truncate(depth);
        continue;
      }
      const double begin_ms = options_.now_ms();
      text.reset();
      PolicyOptions options = options_.policy;
      options.context = lengths_.at(depth).front();
      text = MakeTextCache(Geometry(spec_), options, pool_);
      if (depth > 0) text->SetQuestion(depth);
      Grow(i, *text, depth);
      grown_ms_ += options_.now_ms() - begin_ms;
    }
    return std::span(texts).first(count);
  }

  // Whether the next round finds the texts of an earlier test at their depth.
  bool StayInDepth(const TestCase& test) const {
    const auto texts = std::span(texts_.at(test.depth_tokens)).first(test.texts);
    return std::ranges::all_of(
        texts, [&](const auto& text) { return text->CanTruncate(test.depth_tokens); });
  }

  void Grow(int64_t index, TextCache& text, int64_t depth) {
    const Exec exec = ExecOf(team(max_threads_));
    if (!options_.fill_kv) {
      ReadTogether(index, text, exec, depth);
    } else if (depth > 0) {
      if (sample_ == nullptr) {
        constexpr int64_t kSampleTokens = 64;
        sample_ = std::make_unique<KvSample>(model_, exec, Tokens(spec_, 0, 0, kSampleTokens));
      }
      sample_->Extend(text, exec, depth, options_.chunk_tokens, static_cast<uint32_t>(index));
    }
  }

  struct Reads {
    int64_t tokens = 0;
    KvReads kv;
  };

  // Grows a text to `length` tokens, in chunks. Returns the number of tokens read and the keys that
  // they saw. logits_ become those of the last token.
  Reads ReadTogether(int64_t index, TextCache& text, const Exec& exec, int64_t length,
                     Phase phase = Phase::kPrompt) {
    const int64_t first = text.length();
    const std::vector<int32_t> tokens =
        Tokens(spec_, index, first, std::max<int64_t>(0, length - first));
    Reads reads;
    while (text.length() < length) {
      const int64_t at = text.length(), next = std::min(length - at, text.MaxNextTokens());
      const int64_t n = text.AllRanksReadNext() ? next : std::min(next, options_.chunk_tokens);
      const Segment segment{
          .tokens = std::span(tokens).subspan(at - first, n), .text = &text, .phase = phase};
      Step(exec, {&segment, 1}, at + n == length);
      reads.tokens += n;
      reads.kv += ReadsOf(text);
    }
    return reads;
  }

  // Grows every text by its tokens, one in each step. Returns the reads of their caches. logits_
  // become those of the last tokens.
  Reads Continue(Texts texts, const Exec& exec, std::span<const std::vector<int32_t>> tokens) {
    Reads reads;
    std::vector<Segment> segments(texts.size());
    for (size_t at = 0; at < tokens.front().size(); ++at) {
      for (size_t i = 0; i < texts.size(); ++i) {
        segments[i] = {.tokens = std::span(tokens[i]).subspan(at, 1),
                       .text = texts[i].get(),
                       .phase = Phase::kDecode};
      }
      Step(exec, segments, /*wants_logits=*/true);
      reads.tokens += std::ssize(texts);
      for (const auto& text : texts) reads.kv += ReadsOf(*text);
    }
    return reads;
  }

  static KvReads ReadsOf(const TextCache& text) {
    const KvStats stats = text.Stats();
    return {.bytes = stats.read_bytes, .met_keys = stats.met_keys};
  }

  static int64_t FileReadBytes(Texts texts) {
    int64_t bytes = 0;
    for (const auto& text : texts) bytes += text->Stats().file_read_bytes;
    return bytes;
  }

  std::vector<std::vector<int32_t>> NextTokens(Texts texts, int64_t count) const {
    std::vector<std::vector<int32_t>> tokens;
    for (size_t i = 0; i < texts.size(); ++i) {
      tokens.push_back(Tokens(spec_, static_cast<int64_t>(i), texts[i]->length(), count));
    }
    return tokens;
  }

  // One segment of any length, or several of one token each.
  void Step(const Exec& exec, std::span<const Segment> segments, bool wants_logits) {
    Workspace::Scope scope(exec.workspace);
    const auto texts = std::ssize(segments);
    const int64_t rows = texts == 1 ? std::ssize(segments.front().tokens) : texts;
    const auto hidden = exec.workspace.Matrix<float>(rows, model_.hidden_size());
    model_.Forward(exec, segments, hidden);
    ++steps_;
    if (!wants_logits) return;
    logits_.resize(texts * spec_.vocab_size);
    model_.Logits(exec, hidden.Rows(rows - texts, rows),
                  {logits_.data(), texts, spec_.vocab_size, spec_.vocab_size});
  }

  // The hash of a text's logits_.
  uint64_t HashOf(size_t text) const {
    const auto vocab = static_cast<size_t>(spec_.vocab_size);
    return Fnv1a(std::as_bytes(std::span(logits_).subspan(text * vocab, vocab)));
  }

  // Runs a test once, so that scratch memory settles and pages of the weights come in.
  void WarmUp(const TestCase& test) {
    const Texts texts = TextsFor(test);
    const Exec exec = ExecOf(team(test.threads));
    if (test.prompt_tokens > 0) {
      ReadTogether(0, *texts.front(), exec, test.depth_tokens + test.prompt_tokens);
    } else {
      Continue(texts, exec, NextTokens(texts, 1));
    }
  }

  void RunOnce(const TestCase& test, Measurement& to) {
    Team& team = this->team(test.threads);
    Exec exec = ExecOf(team);
    const Texts texts = TextsFor(test);
    const bool reads_prompt = test.prompt_tokens > 0;
    if (options_.probe != nullptr) {
      if (!reads_prompt) to.bandwidths.push_back(MeasureBandwidth(team));
      const MultiplyPeak peak = options_.probe->PeakOf(team.pool, model_.weight_types().layers);
      to.peaks.push_back(peak.per_second);
      to.peak_name = peak.kind;
    }

    const auto tokens = NextTokens(texts, test.predict_tokens);
    const int64_t file_bytes_before = FileReadBytes(texts);
    const RanksWatch watch(options_.ranks.get());
    weight_bytes_ = 0;
    steps_ = 0;
    if (options_.profile) {
      if (!to.profile) to.profile.emplace(test.threads);
      exec.profile = &*to.profile;
      exec.profile->Start();
    }
    const double begin_ms = options_.now_ms();
    const Reads reads =
        reads_prompt ? ReadTogether(0, *texts.front(), exec, test.depth_tokens + test.prompt_tokens)
                     : Continue(texts, exec, tokens);
    to.seconds.push_back((options_.now_ms() - begin_ms) / 1000);
    if (exec.profile != nullptr) exec.profile->Stop();
    to.steps += steps_;
    to.ranks = watch.Read();
    to.file_bytes = FileReadBytes(texts) - file_bytes_before;

    const int64_t rows_with_logits = reads_prompt ? 1 : test.texts * test.predict_tokens;
    to.multiply_adds =
        static_cast<double>(MultiplyAdds(spec_, reads.tokens, rows_with_logits, reads.kv.met_keys));
    to.kv_bytes_read = static_cast<double>(reads.kv.bytes);
    to.bytes = static_cast<double>(weight_bytes_) + to.kv_bytes_read;
    std::vector<uint64_t> hashes;
    for (size_t i = 0; i < texts.size(); ++i) hashes.push_back(HashOf(i));
    to.agree &= to.hashes.empty() || to.hashes == hashes;
    to.hashes = std::move(hashes);
    to.policy = texts.front()->policy().facts().name;
    to.kv_bytes = 0;
    for (const auto& text : texts) to.kv_bytes += text->Stats().bytes;
  }

  // Compares the result of several texts with that of each alone, its tokens read at once.
  void CompareWithEachAlone(const TestCase& test, Measurement& to) {
    const Exec exec = ExecOf(team(test.threads));
    const Texts texts = TextsFor(test);
    for (size_t i = 0; i < texts.size(); ++i) {
      ReadTogether(static_cast<int64_t>(i), *texts[i], exec,
                   test.depth_tokens + test.predict_tokens, Phase::kDecode);
      to.agree &= to.hashes[i] == HashOf(0);
    }
  }

  TestResult Conclude(const TestCase& test, const Measurement& from, double cache_bytes) const {
    const double read_seconds = from.bytes / Median(from.bandwidths);
    const double multiply_seconds = from.multiply_adds / Median(from.peaks);
    // Both times are infinite if nothing was measured.
    const bool multiplies = test.prompt_tokens > 0 || multiply_seconds > read_seconds;
    const double tokens = static_cast<double>(test.texts) * static_cast<double>(test.tokens());
    const double work = multiplies ? from.multiply_adds : from.bytes;
    TestResult result{
        .test = test,
        .limit_kind = multiplies ? LimitKind::kMultiplyPeak : LimitKind::kReadBandwidth,
        .limit_name = options_.probe == nullptr ? ""
                      : multiplies              ? from.peak_name
                                                : "read_bandwidth",
        .limits = multiplies ? from.peaks : from.bandwidths,
        .work_per_token = work / tokens,
        .kv_read_bytes_per_token = from.kv_bytes_read / tokens,
        .policy = from.policy,
        .kv_bytes = from.kv_bytes,
        .logits_hash = from.hashes.front(),
        .logits_agree = from.agree,
        .ranks = from.ranks};
    if (from.profile) result.profile = {.times = from.profile->Times(), .steps = from.steps};
    if (pool_->file() != nullptr) {
      result.file_bytes_per_token = static_cast<double>(from.file_bytes) / tokens;
    }
    result.fits_cache = options_.probe != nullptr && !multiplies &&
                        work <= cache_bytes * static_cast<double>(test.predict_tokens);
    for (size_t round = 0; round < from.seconds.size(); ++round) {
      result.tokens_per_second.push_back(tokens / from.seconds[round]);
      if (result.limits.empty() || result.fits_cache) continue;
      result.fractions.push_back(work / from.seconds[round] / result.limits[round]);
    }
    return result;
  }

  double MeasureBandwidth(Team& team) {
    const ReadRate rate = options_.probe->ReadBandwidth(team.pool);
    team.read_buffer_bytes = rate.buffer_bytes;
    return team.bandwidths.emplace_back(rate.bytes_per_second);
  }

  std::vector<MachineResult> Machine() {
    std::vector<MachineResult> machine;
    if (options_.probe == nullptr) return machine;
    for (auto& [threads, team] : teams_) {
      if (team->bandwidths.empty()) MeasureBandwidth(*team);  // no test needed it
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
  const std::map<int64_t, std::vector<int64_t>> lengths_;  // by depth
  std::map<int, std::unique_ptr<Team>> teams_;
  int max_threads_ = 0;
  std::shared_ptr<KvPool> pool_;
  std::map<int64_t, std::vector<std::unique_ptr<TextCache>>> texts_;  // by depth
  double grown_ms_ = 0;  // time to reach the depth, in the last test
  std::unique_ptr<KvSample> sample_;
  std::vector<float> logits_;  // [texts, vocab], of each text's last token
  // Bytes of weights multiplied since the last reset. The texts of a step decide how many experts
  // it reads.
  int64_t weight_bytes_ = 0;
  int64_t steps_ = 0;  // since the last reset
  const LinearObserver count_weights_ = [this](const Weight& w, const ops::LinearRows&) {
    weight_bytes_ += w.bytes();
  };
};

}  // namespace

std::string TestCase::Label() const {
  std::string label =
      prompt_tokens > 0 ? fmt::format("pp{}", prompt_tokens) : fmt::format("tg{}", predict_tokens);
  if (texts > 1) label += fmt::format(" np{}", texts);
  if (depth_tokens > 0) label += fmt::format(" @ d{}", depth_tokens);
  return label;
}

SuiteResult RunSuite(const Decoder& model, const SuiteOptions& options) {
  return Suite(model, options).Run();
}

}  // namespace godwit::bench
