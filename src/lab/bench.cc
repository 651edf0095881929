// godwit bench: the speed of this machine with a model, beside the machine's limit.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "attention/make_policy.h"
#include "attention/policies/prefill_spec.h"
#include "attention/ranks/choose_prefill.h"
#include "attention/ranks/rank_speed.h"
#include "base/cores.h"
#include "base/error.h"
#include "base/machine_memory.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "bench/gpu_work.h"
#include "bench/layer.h"
#include "bench/rank_time.h"
#include "bench/suite.h"
#include "bench/suite_texts.h"
#include "checkpoint/model_folder.h"
#include "cli/options/find_model.h"
#include "cli/options/model_options.h"
#include "console/exit_code.h"
#include "console/options/parse_value.h"
#include "console/terminal/format.h"
#include "console/terminal/output.h"
#include "console/terminal/progress_line.h"
#include "dist/mpi.h"
#include "dist/placement.h"
#include "engine/model_device.h"
#include "engine/policy_options.h"
#include "engine/shared_tokens.h"
#include "engine/storage_types.h"
#include "kernels/dispatch.h"
#include "lab/commands.h"
#include "lab/memory_hint.h"
#include "lab/model_run.h"
#include "lab/reports/bench_report.h"
#include "lab/reports/layer_report.h"
#include "model/gpu_plan.h"
#include "model/loader.h"
#include "model/shapes.h"
#include "model/synthetic_weights.h"
#include "model/weight_share.h"

namespace godwit::lab {
namespace {

constexpr int64_t kMaxTokens = int64_t{1} << 22;
constexpr int64_t kMaxTexts = 1024;
// Defaults of the tests.
constexpr int64_t kPrompt = 512, kPredict = 128;

struct BenchOptions {
  cli::ModelOptions model;
  std::optional<std::string> shape;
  std::string weights = "auto";
  std::vector<int64_t> prompt, predict, texts, depth, threads;  // empty: the default
  int64_t rounds = 5;
  bool no_warm_up = false;
  bool no_limits = false;
  bool fill_kv = false;
  bool profile = false;
  bool layer = false;
  std::string cache;  // folder of snapshots to continue from; empty: no such test
  std::vector<int64_t> ranks, contexts;  // of the time model for several hosts; no ranks: none
  std::vector<double> network_gbit;
  float network_us = 50;
  SessionOptions session;  // kv, kv_type, int8_attention, chunk_tokens, prefill
  bool json = false;
  bool csv = false;
};

// Adds the values of a flag to its list, which grows when the flag is given again.
void AddList(console::CommandLine& line, console::Flag flag, std::vector<int64_t>& target,
             int64_t min, int64_t max) {
  flag.repeats = true;
  line.Add(std::move(flag), [&target, min, max](const std::string& value) {
    const std::vector<int64_t> numbers = console::ParseIntList(value, min, max);
    target.insert(target.end(), numbers.begin(), numbers.end());
  });
}

std::string ShapeNames() { return NameList(AllShapes(), &ModelShape::name); }

void AddTestFlags(console::CommandLine& line, BenchOptions& options) {
  line.Group("Tests");
  AddList(line,
          {.names = "-p,--n-prompt",
           .value = "N,...",
           .help = "test prompt processing with prompts of N tokens (0: no such test); a list, or "
                   "a range such as 128-1024*2",
           .fallback = fmt::format("{}", kPrompt)},
          options.prompt, 0, kMaxTokens);
  AddList(line,
          {.names = "-n,--n-gen",
           .value = "N,...",
           .help = "test decoding of N tokens, one by one (0: no such test)",
           .fallback = fmt::format("{}", kPredict)},
          options.predict, 0, kMaxTokens);
  AddList(line,
          {.names = "-np,--parallel",
           .value = "N,...",
           .help = "decode N texts in one batch: each has its own KV cache, and a step reads the "
                   "weights once for all",
           .fallback = "1",
           .is_verbs_own = true},
          options.texts, 1, kMaxTexts);
  AddList(line,
          {.names = "-d,--n-depth",
           .value = "N,...",
           .help = "the tokens in the KV cache before a test begins",
           .fallback = "0"},
          options.depth, 0, kMaxTokens);
  line.AddInt({.names = "-r,--repetitions",
               .value = "N",
               .help = "run N rounds of all tests and report medians"},
              options.rounds, 1, 10000);
  line.Add({.names = "--fill-kv",
            .value = "",
            .help = "fill the KV cache to its depth by repeating the keys and values of a short "
                    "prompt, instead of processing a prompt of that length"},
           options.fill_kv);
  line.Add({.names = "--cache",
            .value = "FOLDER",
            .help = "test saved texts instead: save texts of the depths of -d in a new folder "
                    "inside FOLDER, restore them, and compare with the speed of the disk",
            .is_verbs_own = true},
           options.cache);
  line.Add({.names = "--no-warmup",
            .value = "",
            .help = "do not run each test once before measuring it"},
           options.no_warm_up);
  line.Add({.names = "--no-limits",
            .value = "",
            .help = "do not measure the limits of the machine, which takes less time"},
           options.no_limits);
  line.Add({.names = "--profile",
            .value = "",
            .help = "also measure the share of the threads' time that each part of a step takes: "
                    "products, attention, quantizing, norms, waiting and others"},
           options.profile);
  line.Add(
      {.names = "--layer",
       .value = "",
       .help = "count the parts of one layer instead, for steps of -p rows at -d: their "
               "multiplications and bytes, the time of each alone on one thread, and its limit"},
      options.layer);
  line.Exclusive({"--profile", "--cache", "--layer"});
}

// Adds the numbers of a list of Gbit/s.
void AddBandwidths(std::string_view list, std::vector<double>& target) {
  for (const std::string_view text : console::SplitAtCommas(list)) {
    double gbit = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), gbit);
    if (error != std::errc() || rest != text.data() + text.size() || !(gbit > 0) ||
        !std::isfinite(gbit)) {
      Throw(ErrorKind::kInput, "--network-gbit: found {}, expected numbers above 0, as 10,100",
            Quote(list));
    }
    target.push_back(gbit);
  }
}

void AddRankTimeFlags(console::CommandLine& line, BenchOptions& options) {
  line.Group("Several hosts");
  cli::AddRankFlags(line, options.model);
  AddList(line,
          {.names = "--ranks",
           .value = "N,...",
           .help = "estimate the time of N hosts like this one for a long context, by a model "
                   "fitted to the tests, which need prompts at two depths",
           .fallback = "none"},
          options.ranks, 1, bench::kMaxHosts);
  AddList(line,
          {.names = "--contexts",
           .value = "N,...",
           .help = "with --ranks: the tokens of the contexts",
           .fallback = "131072,1048576"},
          options.contexts, 2, kMaxTokens);
  line.Add({.names = "--network-gbit",
            .value = "X,...",
            .help = "with --ranks: the bandwidth of a link between hosts in Gbit/s",
            .fallback = "10,100"},
           [&options](const std::string& value) { AddBandwidths(value, options.network_gbit); });
  line.Add({.names = "--network-us",
            .value = "X",
            .help = "with --ranks: the latency of a message in microseconds"},
           options.network_us);
  for (const char* flag : {"--contexts", "--network-gbit", "--network-us"}) {
    line.Needs(flag, {"--ranks"});
  }
}

void AddComputing(console::CommandLine& line, BenchOptions& options) {
  line.Group("Computing");
  AddList(line,
          {.names = "-t,--threads",
           .value = "N,...",
           .help = "threads to compute with (0: one per core)",
           .fallback = "0"},
          options.threads, 0, ThreadPool::kMaxThreads);
  cli::AddIsaFlag(line, options.model);
  cli::AddDeviceFlags(line, options.model);
  cli::AddNumaFlag(line, options.model);
  cli::AddKvCacheFlags(line, options.session);
  cli::AddPrefillFlag(line, options.session);
  cli::AddKvMemoryFlags(line, options.model.kv_memory);
}

void ParseBench(std::span<const std::string> arguments, BenchOptions& options) {
  console::CommandLine line(
      "bench", "[-m MODEL | --shape NAME] [flags]",
      "Measures the speed of a model with the tests of llama-bench, and the limits of the machine "
      "before every test: its read bandwidth and its peak of multiplications.");
  cli::AddModelFlag(line, options.model);
  line.Add({.names = "--shape",
            .value = "NAME",
            .help = fmt::format("take synthetic weights of this shape instead of a checkpoint: {}, "
                                "or the path of a config.json",
                                ShapeNames()),
            .choices = Names(AllShapes(), &ModelShape::name)},
           options.shape);
  line.Add({.names = "--weights",
            .value = "TYPE",
            .help = fmt::format(
                "the type of weights: {} (auto: the type of the checkpoint, or bf16 for a shape)",
                NameList(WeightTypeNames(), std::identity(), " or ")),
            .fallback = options.weights,
            .choices = WeightTypeNames()},
           options.weights);
  cli::AddPackFlags(line, options.model);
  line.Exclusive({"--model", "--shape"});
  line.Exclusive({"--pack", "--shape"});
  line.Exclusive({"--packed", "--shape"});
  AddTestFlags(line, options);
  AddComputing(line, options);
  AddRankTimeFlags(line, options);
  line.Group("Output");
  line.Add(
      {.names = "--json", .value = "", .help = "print a JSON array with an object for each test"},
      options.json);
  line.Add({.names = "--csv", .value = "", .help = "print comma-separated values"}, options.csv);
  line.Exclusive({"--json", "--csv", "--ranks"});
  for (const char* other : {"--csv", "--ranks", "--threads", "--n-gen", "--parallel", "--device"}) {
    line.Exclusive({"--layer", other});
  }
  line.Exclusive({"--ranks", "--device"});  // estimates are those of hosts without GPUs
  line.RefusePlot();
  line.Parse(arguments);
  if (options.network_gbit.empty()) options.network_gbit = {10, 100};
  if (!(options.network_us >= 0)) {
    Throw(ErrorKind::kInput, "--network-us {}: expected 0 or more", options.network_us);
  }
}

// Refuses, before any measurement, options that the time model of several hosts cannot use.
void CheckForRankTime(const BenchOptions& options, std::span<const bench::TestCase> cases) {
  if (MpiSize() > 1) {
    Throw(ErrorKind::kInput,
          "--ranks estimates the time of several hosts from tests on one: run it without mpirun");
  }
  if (!PolicyFactsOf(options.session.kv).shows_all) {
    Throw(ErrorKind::kUnsupported, "--ranks works with --kv dense only, not with {}",
          options.session.kv);
  }
  std::set<int64_t> depths;
  for (const bench::TestCase& test : cases) {
    if (test.threads != cases.front().threads) {
      Throw(ErrorKind::kInput,
            "--ranks assumes the same number of threads on all hosts: give one value of -t");
    }
    if (test.prompt_tokens > 0) depths.insert(test.depth_tokens);
  }
  if (depths.size() < 2) bench::RefuseOneDepth();
}

// Tests in llama-bench's order: the prompts of a depth, then the decoding there.
std::vector<bench::TestCase> Cases(const BenchOptions& options) {
  const auto or_default = [](std::vector<int64_t> list, int64_t fallback) {
    return list.empty() ? std::vector{fallback} : std::move(list);
  };
  const bool share_texts = MpiSize() > options.model.tensor_parallel;
  // Tests whose text has no context that ranks could share.
  const auto asks_alone = [&](int64_t depth) { return share_texts && depth == 0; };
  std::vector<bench::TestCase> cases;
  for (const int64_t threads : or_default(options.threads, 0)) {
    const int count = ThreadsFor(static_cast<int>(threads));
    for (const int64_t depth : or_default(options.depth, 0)) {
      for (const int64_t prompt : or_default(options.prompt, kPrompt)) {
        if (prompt > (asks_alone(depth) ? 1 : 0)) {
          cases.push_back({.prompt_tokens = prompt, .depth_tokens = depth, .threads = count});
        }
      }
      for (const int64_t predict : or_default(options.predict, kPredict)) {
        if (predict == 0 || asks_alone(depth)) continue;
        for (const int64_t texts : or_default(options.texts, 1)) {
          cases.push_back(
              {.predict_tokens = predict, .depth_tokens = depth, .threads = count, .texts = texts});
        }
      }
    }
  }
  if (cases.empty() && share_texts) {
    Throw(ErrorKind::kInput,
          "nothing to measure: ranks share a long context, so test reading it with -p 65536, or "
          "answers with -n 32 -d 65536");
  }
  if (cases.empty()) Throw(ErrorKind::kInput, "nothing to measure: both -p and -n are 0");
  if (!options.ranks.empty()) CheckForRankTime(options, cases);
  return cases;
}

// The model under test, before any memory is taken for it.
struct Subject {
  std::string name;
  std::optional<ModelFolder> folder;
  std::unique_ptr<const WeightSource> synthetic;  // set if there is no folder
  DecoderSpec stored;                             // of the checkpoint
  DecoderSpec spec;                               // of the weights on this rank
  std::optional<DType> storage;                   // as LoadDecoder takes it
  int64_t weight_bytes = 0;
  WeightTypes weights{};

  const WeightSource& source() const { return folder ? folder->weights() : *synthetic; }
};

// tensor_ranks: those that share the weights; null: none.
Subject OpenSubject(const BenchOptions& options,
                    const std::shared_ptr<Communicator>& tensor_ranks) {
  Subject subject{.storage = ParseWeightType(options.weights)};
  if (options.shape) {
    subject.name = *options.shape;
    subject.stored = FindShape(*options.shape);
    subject.synthetic = SyntheticWeights(
        subject.stored, subject.storage == DType::kF32 ? DType::kF32 : DType::kBF16);
  } else {
    subject.name = cli::ModelName(options.model.folder);
    subject.stored = subject.folder.emplace(options.model.folder).spec();
    cli::WarnAboutSpec(subject.stored);
  }
  const WeightShare share =
      TakeShare(subject.stored, ResolveTensors(subject.stored, subject.source()), tensor_ranks);
  subject.spec = share.spec;
  subject.weight_bytes = LoadedBytes(share.tensors, subject.storage);
  subject.weights = LoadedTypes(share.tensors, subject.storage);
  return subject;
}

bench::SuiteOptions Plan(const BenchOptions& options, const Subject& subject,
                         const Placement& placement) {
  PolicyOptions policy = PolicyOptionsOf(options.session, subject.spec, subject.weights);
  policy.ranks = placement.context;
  const KvLayout layout = LayoutOf(Geometry(subject.spec), policy.kv_type);
  return {.cases = Cases(options),
          .policy = std::move(policy),
          .ranks = placement.all,
          .kv_pool = PoolOf(options.model.kv_memory, layout),
          .chunk_tokens = options.session.chunk_tokens,
          .isa = &kernels::SelectIsa(options.model.isa),
          .numa = ParseNuma(options.model.numa),
          .rounds = options.rounds,
          .fill_kv = options.fill_kv,
          .warm_up = !options.no_warm_up,
          .profile = options.profile};
}

// Speeds of the ranks, each of which computes with the threads of the first test.
std::vector<RankSpeed> SpeedsOf(const bench::SuiteOptions& suite, const Subject& subject) {
  if (suite.policy.ranks == nullptr) return {};
  ThreadPool pool(suite.cases.front().threads);
  Workspace workspace;
  const auto speeds = MeasureRanks(
      *suite.ranks, {.pool = pool, .kernels = *suite.isa->table, .workspace = workspace},
      Geometry(subject.spec), suite.policy.kv_type,
      suite.kv_pool ? suite.kv_pool->budget().bytes() : ReadMachineMemory().available_bytes);
  return SpeedsOfGroups(speeds, suite.ranks->size() / suite.policy.ranks->size());
}

// Refuses a suite that does not fit into memory, and names the flags with which it would.
void CheckMemory(const Subject& subject, const bench::SuiteOptions& suite) {
  try {
    bench::CheckMemory(subject.spec, suite, subject.weight_bytes);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kMemory || suite.ranks != nullptr) throw;
    const ModelTensors tensors = ResolveTensors(subject.spec, subject.source());
    std::vector<StoredWeights> storages;
    for (const WeightType& type : kWeightTypes) {
      storages.push_back({type.name, LoadedBytes(tensors, type.dtype)});
    }
    const std::string hint = MemoryHint(subject.spec, suite, subject.weight_bytes, storages);
    if (hint.empty()) throw;
    throw Error(error.kind(), fmt::format("{}: use {}", error.what(), hint));
  }
}

// Joins the ranks that mpirun started, which measure the same.
Placement JoinRanks(const BenchOptions& options, std::span<const std::string> arguments) {
  if (MpiSize() == 1) return Place(nullptr, options.model.tensor_parallel);
  auto ranks = JoinMpi(options.model.rank_silence_s);
  AgreeOnModel(*ranks, options.model.folder,
               {"the flags", fmt::format("{}", fmt::join(arguments, " "))});
  return Place(std::move(ranks), options.model.tensor_parallel);
}

// The report of --ranks, computed from the tests.
std::string RankTime(const BenchOptions& options, const Subject& subject,
                     const bench::SuiteOptions& suite, const bench::SuiteResult& result) {
  const std::string& prefill = options.session.prefill;
  std::vector<std::string> prefills = {"star", "ring"};
  if (!prefill.empty() && prefill != kAutoPrefill) {
    const PrefillSpec spec = ParsePrefill(prefill);
    if (spec.star()) prefills[0] = prefill;
    if (spec.ring > 0) prefills[1] = prefill;
  }
  std::vector<bench::Network> networks;
  for (const double gbit : options.network_gbit) {
    networks.push_back({.bytes_per_second = 1e9 / 8 * gbit,
                        .seconds = 1e-6 * static_cast<double>(options.network_us)});
  }
  return RankTimeText({.spec = subject.spec,
                       .tensors = ResolveTensors(subject.spec, subject.source()),
                       .storage = subject.storage,
                       .layout = LayoutOf(Geometry(subject.spec), suite.policy.kv_type),
                       .prefills = prefills,
                       .contexts = options.contexts.empty() ? std::vector<int64_t>{1 << 17, 1 << 20}
                                                            : options.contexts,
                       .hosts = options.ranks,
                       .chunk_tokens = suite.chunk_tokens,
                       .times = bench::FitHost(subject.spec, result.tests),
                       .networks = networks});
}

std::unique_ptr<Decoder> Load(const Subject& subject, const bench::SuiteOptions& suite,
                              const PackedOptions& packed,
                              const std::shared_ptr<Communicator>& tensor_ranks) {
  int threads = 1;
  for (const bench::TestCase& test : suite.cases) threads = std::max(threads, test.threads);
  std::string placement;
  ThreadPool pool(threads, PlaceThreads(suite.numa, threads, &placement));
  if (!placement.empty()) console::WriteNotice("godwit: " + placement + "\n");
  cli::WarnAboutThreads(threads);
  console::ProgressLine progress("loading " + subject.name, console::ProgressUnit::kBytes);
  const LoadHooks hooks{
      .progress = [&](int64_t done, int64_t total) { progress.Update(done, total); },
      .warn = [&](const std::string& message) { progress.Say("godwit: warning: " + message); }};
  if (subject.folder) {
    return LoadModel(*subject.folder, pool, hooks, subject.storage, packed, tensor_ranks);
  }
  return LoadDecoder(subject.stored, subject.source(), pool, hooks, subject.storage, tensor_ranks);
}

int BenchRestore(const BenchOptions& options, const bench::SuiteOptions& suite,
                 const Decoder& model) {
  if (MpiSize() > 1)
    Throw(ErrorKind::kUnsupported, "--cache works in one process: run it without mpirun");
  console::ProgressLine progress("measuring", console::ProgressUnit::kTests);
  const auto results =
      bench::MeasureRestore(model, suite, options.cache,
                            [&](int64_t done, int64_t total) { progress.Update(done, total); });
  progress.Finish();
  console::WriteOutput(options.json ? RestoreJson(results) : RestoreText(results));
  const bool agree = std::ranges::all_of(results, &bench::RestoreResult::logits_agree);
  if (!agree)
    console::WriteStatus(
        "godwit: the logits of a restored text differ from those of a text that was read\n");
  return agree ? console::kExitOk : console::kExitInternalError;
}

// The parts of one layer, of any weights of the model's type and shape.
int BenchLayer(const BenchOptions& options, const bench::SuiteOptions& suite,
               const Subject& subject) {
  std::vector<bench::LayerCount> counts;
  bench::MachineProbe probe(*suite.isa);
  for (const bench::TestCase& test : suite.cases) {
    if (test.prompt_tokens == 0) continue;
    counts.push_back(bench::CountLayer(subject.spec, {.rows = test.prompt_tokens,
                                                      .depth = test.depth_tokens,
                                                      .weights = subject.weights.layers,
                                                      .kv_type = suite.policy.kv_type,
                                                      .int8_products = suite.policy.int8_products,
                                                      .isa = suite.isa,
                                                      .probe = &probe,
                                                      .runs = options.rounds}));
  }
  if (counts.empty()) {
    Throw(ErrorKind::kInput, "--layer counts steps of -p rows: give a number of rows, as -p 512");
  }
  const LayerReport report{.model = subject.name,
                           .weights = StorageName(subject.weights.layers),
                           .kv_type = StorageName(suite.policy.kv_type),
                           .isa = std::string(suite.isa->name)};
  console::WriteOutput(options.json ? LayerJson(report, counts) : LayerText(report, counts));
  return console::kExitOk;
}

// The GPU's part of attention in a test. The context of a continued text counts as read.
bench::GpuAttentionWork GpuAttentionOf(const DecoderSpec& spec, const bench::SuiteOptions& suite,
                                       const bench::TestCase& test) {
  const PolicyOptions& policy = suite.policy;
  if (test.prompt_tokens > 0) {
    if (policy.prefill != kGpuPrefill) return {};
    return bench::CountGpuReading(spec, policy.kv_type, test.depth_tokens, test.prompt_tokens,
                                  suite.chunk_tokens);
  }
  if (policy.gpu_window == 0) return {};
  const auto near = MakePolicy(Geometry(spec), policy)->near_on_gpu().tiles;
  return bench::CountGpuNear(spec, policy.kv_type, near, test.depth_tokens);
}

// The near keys that a GPU keeps for the texts of the tests. In f32 they take the place of two.
GpuWindow WindowOf(const bench::SuiteOptions& suite) {
  GpuWindow window{.tokens = suite.policy.gpu_window};
  if (suite.policy.kv_type == DType::kF32) window.tokens *= 2;
  for (const bench::TestCase& test : suite.cases) window.texts = std::max(window.texts, test.texts);
  return window;
}

}  // namespace

int Bench(std::span<const std::string> arguments) {
  BenchOptions options;
  ParseBench(arguments, options);
  Cases(options);
  if (!options.shape) cli::ChooseModel(options.model);
  const Placement placement = JoinRanks(options, arguments);
  const Subject subject = OpenSubject(options, placement.tensor);
  bench::SuiteOptions suite = Plan(options, subject, placement);
  if (options.layer) return BenchLayer(options, suite, subject);
  suite.policy.rank_speeds = SpeedsOf(suite, subject);
  CheckMemory(subject, suite);
  const auto gpu = OpenDevice(options.model.device, options.model.gpu_memory_bytes);
  if (gpu != nullptr) RequireGpuLayers(subject.spec);
  const auto model = Load(subject, suite, cli::PackedCopy(options.model), placement.tensor);
  const auto device =
      PlaceOnDevice(*model, gpu, suite.chunk_tokens,
                    /*attends=*/options.session.prefill == kGpuPrefill, WindowOf(suite));
  if (!options.cache.empty()) return BenchRestore(options, suite, *model);

  BenchReport report{.model = subject.name,
                     .weights = StorageName(model->weight_types()),
                     .kv_type = StorageName(suite.policy.kv_type),
                     .isa = std::string(suite.isa->name),
                     .weight_bytes = model->weight_bytes(),
                     .fill_kv = options.fill_kv,
                     .layers = static_cast<double>(subject.spec.layers),
                     .device = device};
  if (device) {
    report.gpu_work = bench::CountGpuWork(subject.spec, *model->gpu_plan());
    if (!options.no_limits) report.gpu_limits = bench::MeasureGpuLimits(*gpu);
  }
  {
    console::ProgressLine progress("measuring", console::ProgressUnit::kTests);
    bench::MachineProbe probe(*suite.isa);
    // Limits of the CPU say nothing about a step of which a GPU has a part.
    if (!options.no_limits && !device) suite.probe = &probe;
    suite.on_progress = [&](int64_t done, int64_t total, std::optional<double> left_ms) {
      progress.Update(done, total, /*start=*/0, left_ms);
    };
    report.result = bench::RunSuite(*model, suite);
  }
  if (device) {
    for (bench::TestResult& result : report.result.tests) {
      const bench::GpuAttentionWork attention = GpuAttentionOf(subject.spec, suite, result.test);
      if (attention.bus.both() > 0) {
        const int64_t tokens = std::max<int64_t>(1, result.test.prompt_tokens);
        result.attention_bus_bytes_per_token =
            static_cast<double>(attention.bus.both()) / static_cast<double>(tokens);
      }
      if (!report.gpu_limits) continue;
      bench::HoldAgainst(*report.gpu_limits, report.gpu_work, model->weight_types().layers,
                         attention, result);
    }
  }
  console::WriteOutput(options.json  ? BenchJson(report)
                       : options.csv ? BenchCsv(report)
                                     : BenchText(report));
  if (!options.ranks.empty())
    console::WriteOutput(RankTime(options, subject, suite, report.result));
  for (const bench::TestResult& result : report.result.tests) {
    if (result.logits_agree) continue;
    console::WriteStatus(
        fmt::format("godwit: {}: the logits differ between rounds{}\n", result.test.Label(),
                    result.test.texts > 1 ? ", or from those of a single text" : ""));
    return console::kExitInternalError;
  }
  return console::kExitOk;
}

}  // namespace godwit::lab
