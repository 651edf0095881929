#include "cli/options/model_options.h"

#include <filesystem>
#include <functional>
#include <optional>

#include "attention/make_policy.h"
#include "attention/policies/prefill_spec.h"
#include "attention/ranks/choose_prefill.h"
#include "base/cores.h"
#include "base/error.h"
#include "base/machine_memory.h"
#include "base/name_list.h"
#include "base/numa.h"
#include "base/quote.h"
#include "base/system/self.h"
#include "base/thread_pool.h"
#include "checkpoint/model_folder.h"
#include "cli/options/find_model.h"
#include "console/options/parse_value.h"
#include "console/terminal/format.h"
#include "console/terminal/output.h"
#include "console/terminal/progress_line.h"
#include "dist/mpi.h"
#include "engine/model_device.h"
#include "engine/packed_options.h"
#include "engine/storage_types.h"
#include "kernels/dispatch.h"

namespace godwit::cli {
namespace {

// The small model of the project, if this program lies where it was built or installed.
std::optional<std::filesystem::path> OwnModel() {
  std::error_code error;
  const auto program = ThisProgram();
  if (program.empty()) return std::nullopt;
  const auto beside = program.parent_path();  // ROOT/build/PRESET, or a folder of programs
  for (const auto& data : {beside.parent_path().parent_path(), beside / GODWIT_INSTALLED_DATA}) {
    const auto folder = (data / "models" / "stories-3m").lexically_normal();
    if (std::filesystem::is_directory(folder, error)) return folder;
  }
  return std::nullopt;
}

// Writes a notice of the cache beside a progress line.
void SayCacheNotice(const std::string& message) {
  console::WriteNotice(
      fmt::format("{}godwit: {}\n", console::ProgressIsVisible() ? "\n" : "", message));
}

}  // namespace

void AddModelFlag(console::CommandLine& line, ModelOptions& options) {
  line.Group("Model");
  line.Add({.names = "-m,--model",
            .value = "MODEL",
            .help = "a GGUF file, a folder in Hugging Face's format (config.json, *.safetensors, a "
                    "tokenizer), or ORG/NAME of a model that godwit pull downloaded; "
                    "ORG/NAME:Q4_K_M chooses one of its GGUF files",
            .fallback = "the small model of godwit, models/stories-3m"},
           options.folder);
}

void AddThreadFlags(console::CommandLine& line, ModelOptions& options) {
  line.Add({.names = "-t,--threads",
            .value = "N",
            .help = "threads to compute with (0: one per core)",
            .fallback = fmt::format("{}", options.threads)},
           [&options](const std::string& value) {
             // llama.cpp's default is -1.
             const int64_t threads = console::ParseInt(value, -1, ThreadPool::kMaxThreads);
             options.threads = threads < 0 ? 0 : static_cast<int>(threads);
           });
  AddIsaFlag(line, options);
}

void AddIsaFlag(console::CommandLine& line, ModelOptions& options) {
  std::vector<std::string> names = Names(kernels::AllIsas(), &kernels::Isa::name);
  line.Add({.names = "--isa",
            .value = "NAME",
            .help = "instruction set: " + NameList(names, std::identity(), " or "),
            .fallback = "the best of this processor",
            .choices = std::move(names)},
           [&options](const std::string& value) {
             (void)kernels::SelectIsa(value);  // refuses it before any reading
             options.isa = value;
           });
}

void AddComputeFlags(console::CommandLine& line, ModelOptions& options) {
  AddThreadFlags(line, options);
  AddDeviceFlags(line, options);
  AddWeightsFlag(line, options);
  line.Add({.names = "--input-scale",
            .value = "OF",
            .help = "where a checkpoint gives all tokens of a step one scale of their int8 inputs: "
                    "step, as it says, so that results depend on -ub and on other texts; token, a "
                    "scale for each",
            .fallback = "token",
            .choices = {"token", "step"}},
           [&options](const std::string& value) {
             if (value != "token" && value != "step") {
               Throw(ErrorKind::kInput, "expected token or step, found {}", Quote(value));
             }
             options.step_scales = value == "step";
           });
  AddNumaFlag(line, options);
  AddPackFlags(line, options);
}

void AddDeviceFlags(console::CommandLine& line, ModelOptions& options) {
  line.Add({.names = "--device",
            .value = "NAME",
            .help = "where linear layers compute: cpu, or cuda or cuda:N, a GPU, for families like "
                    "Llama (docs/gpu.md); emulated runs a GPU's kernels on the CPU, for tests",
            .fallback = "cpu",
            .choices = {"cpu", "cuda", "emulated"}},
           [&options](const std::string& value) {
             CheckDeviceName(value);  // refuses it before any reading
             options.device = value;
           });
  line.Add({.names = "--gpu-memory",
            .value = "SIZE",
            .help = "the most of the GPU's memory that the model takes: layers that do not fit "
                    "compute on the CPU",
            .fallback = "15/16 of what is free there"},
           [&options](const std::string& value) {
             options.gpu_memory_bytes = console::ParseBytes(value);
           });
  line.Needs("--gpu-memory", {"--device"});
}

void AddWeightsFlag(console::CommandLine& line, ModelOptions& options) {
  line.Add({.names = "--weights",
            .value = "TYPE",
            .help = "convert weights to this type while loading: " +
                    NameList(WeightTypeNames(), std::identity(), " or ") +
                    " (auto: as in the checkpoint)",
            .fallback = options.weights,
            .choices = WeightTypeNames()},
           [&options](const std::string& value) {
             ParseWeightType(value);  // refuses it before any reading
             options.weights = value;
           });
}

void AddPackFlags(console::CommandLine& line, ModelOptions& options) {
  line.Add({.names = "--pack",
            .value = "",
            .help = "write a packed copy of the model first if none is up to date (see godwit "
                    "pack), so that later starts take almost no time"},
           options.pack);
  line.Add({.names = "--packed",
            .value = "FILE",
            .help = "the packed copy to load, or none to load without one",
            .fallback = "the one beside the model, if it is up to date"},
           options.packed);
}

PackedOptions PackedCopy(const ModelOptions& options) {
  return PackedOptionsOf(
      {.packed = options.packed, .pack = options.pack, .packed_dir = PackedFolder()});
}

void AddRankFlags(console::CommandLine& line, ModelOptions& options) {
  line.AddInt(
      {
          .names = "--rank-silence",
          .value = "SECONDS",
          .help = "under mpirun: end all ranks when one has been silent for this long",
      },
      options.rank_silence_s, 1, 3600);
  line.AddInt(
      {
          .names = "--tensor-parallel",
          .value = "N",
          .help = "under mpirun: N neighbouring ranks share the weights, each with its heads, MLP "
                  "columns and experts, so that a model fits that one host cannot hold; groups of "
                  "N ranks share contexts by --prefill",
      },
      options.tensor_parallel, 1, kMaxTensorParallel);
}

void AddNumaFlag(console::CommandLine& line, ModelOptions& options) {
  line.Add(
      {.names = "--numa",
       .value = "HOW",
       .help = "none, or distribute: pin threads to cores and spread memory over all NUMA nodes",
       .fallback = "none",
       .choices = {"none", "distribute"}},
      [&options](const std::string& value) {
        (void)ParseNuma(value);
        options.numa = value;
      });
}

void WarnAboutThreads(int threads) {
  const int cores = AvailableCores();
  if (threads <= cores) return;
  console::WriteNotice(fmt::format(
      "godwit: warning: {} threads for {}: they wait for each other and are slower than {}\n",
      threads, console::Plural(cores, "core"), cores));
}

void WarnAboutSpec(const DecoderSpec& spec) {
  for (const std::string& warning : spec.warnings)
    console::WriteNotice("godwit: warning: " + warning + "\n");
}

void ChooseModel(ModelOptions& options) {
  if (!options.folder.empty()) {
    options.folder = FindModel(options.folder);
    return;
  }
  const auto own = OwnModel();
  if (!own) {
    Throw(ErrorKind::kInput,
          "a model is needed: name it with -m, a GGUF file or a folder, or in the variable "
          "GODWIT_MODEL");
  }
  options.folder = own->string();
  console::WriteNotice("godwit: no -m given: using the small model of godwit, models/" +
                       own->filename().string() + "\n");
}

std::string DescribeHostMlps(int64_t layers, int64_t host_mlps, int64_t shared_mlps) {
  if (host_mlps == 0) return "";
  const auto count = [&](int64_t n) { return n == layers ? "all" : fmt::to_string(n); };
  std::string text = count(host_mlps) + " without experts or MLP";
  if (shared_mlps > 0) text += ", " + count(shared_mlps) + " with shared experts";
  return " (" + text + ")";
}

std::string DescribeDevice(const DeviceUse& use) {
  std::string text =
      fmt::format("{}: {} of {}", use.name, use.layers, console::Plural(use.model_layers, "layer"));
  text += DescribeHostMlps(use.layers, use.host_mlps, use.shared_mlps);
  if (use.head) text += " and the output head";
  text += fmt::format(", {} of weights", FormatBytes(use.weight_bytes));
  if (use.window_bytes > 0) {
    text += fmt::format(", {} of keys and values", FormatBytes(use.window_bytes));
  }
  return fmt::format("{} and {} for a step{}, of {} that may be used", text,
                     FormatBytes(use.scratch_bytes), use.attends ? " with attention" : "",
                     FormatBytes(use.limit_bytes));
}

void CheckKv(const DecoderSpec& spec, const SessionOptions& session) {
  const int64_t most = CheckKvOptions(spec, session);
  if (most <= spec.max_context) return;
  console::WriteNotice(
      fmt::format("godwit: warning: {} keeps up to {}, and the model was made for {}: text beyond "
                  "that gets worse\n",
                  session.kv, console::Plural(most, "token"), spec.max_context));
}

std::shared_ptr<const EngineGroup> NewGroup(const ModelOptions& options) {
  return std::make_shared<const EngineGroup>(
      LoadOptions{.threads = options.threads,
                  .numa = options.numa,
                  .kv_memory_bytes = options.kv_memory.bytes,
                  .kv_file = options.kv_memory.file,
                  .kv_file_bytes = options.kv_memory.file_bytes,
                  .on_warning = [](const std::string& message) {
                    console::WriteNotice("godwit: warning: " + message + "\n");
                  }});
}

Engine LoadEngine(const ModelOptions& options, const SessionOptions& session,
                  std::span<const std::string> kv_specs) {
  return LoadEngine(ModelFolder(options.folder), options, session, kv_specs);
}

Engine LoadEngine(const ModelFolder& model, const ModelOptions& options,
                  const SessionOptions& session, std::span<const std::string> kv_specs) {
  for (const std::string& kv : kv_specs.empty() ? std::span(&session.kv, 1) : kv_specs) {
    SessionOptions checked = session;
    checked.kv = kv;
    CheckKv(model.spec(), checked);
  }
  const bool gpu_attention = options.gpu_attention || session.prefill == kGpuPrefill;
  // Keys and values in f32 take the place of two.
  const int64_t place = session.kv_type == "f32" ? 2 : 1;
  const int64_t gpu_window = std::max(options.gpu_window, session.gpu_window * place);
  const bool on_cpu = options.device.empty() || options.device == "cpu";
  if (gpu_window > 0 && on_cpu) {
    Throw(ErrorKind::kInput, "--gpu-window lets a GPU attend: name one with --device");
  }
  if (gpu_attention && on_cpu) {
    Throw(ErrorKind::kInput, "--prefill {} lets a GPU read contexts: name one with --device",
          kGpuPrefill);
  }
  WarnAboutThreads(options.threads);
  const std::vector<int> cpus = AssignCpus(NumaNodes(), 1);
  console::ProgressLine progress("loading " + ModelName(options.folder),
                                 console::ProgressUnit::kBytes, /*patience_ms=*/500);
  Engine engine(
      options.folder,
      {.threads = options.threads,
       .isa = options.isa,
       .numa = options.numa,
       .weights = options.weights,
       .device = options.device,
       .gpu_memory_bytes = options.gpu_memory_bytes,
       .gpu_attention = gpu_attention,
       .gpu_window = gpu_window,
       .gpu_window_texts = options.gpu_window_texts,
       .packed = options.packed,
       .pack = options.pack,
       .packed_dir = PackedFolder(),
       .chat_template = options.chat_template,
       .kv_memory_bytes = options.kv_memory.bytes,
       .kv_file = options.kv_memory.file,
       .kv_file_bytes = options.kv_memory.file_bytes,
       .cache_dir = options.cache.folder,
       .cache_bytes = options.cache.bytes,
       .on_cache_notice = SayCacheNotice,
       // -ub asks for chunks of that size.
       .step_tokens = std::max(LoadOptions().step_tokens, session.chunk_tokens),
       .prompt_slowdown = options.prompt_slowdown,
       .mpi = MpiSize() > 1,
       .tensor_parallel = options.tensor_parallel,
       .mpi_silence_ms = 1000.0 * options.rank_silence_s,
       .mtp = options.mtp,
       .eagle3 = options.eagle3,
       .draft_model = options.draft_model,
       .step_scales = options.step_scales,
       .group = options.group,
       .needs_text = options.needs_text,
       .on_progress =
           [&](int64_t done, int64_t total) {
             progress.Update(done, total);
             if (options.on_progress) options.on_progress(done, total);
           },
       .on_stage = [&](std::string_view stage) { progress.Begin(stage); },
       .on_warning =
           [&](const std::string& message) { progress.Say("godwit: warning: " + message); }});
  progress.Finish();
  if (!engine.device().name.empty()) {
    console::WriteNotice(fmt::format("godwit: {}\n", DescribeDevice(engine.device())));
  }
  // The engine pins its own threads; this thread computes with them.
  if (ParseNuma(options.numa) != Numa::kNone && !cpus.empty()) PinThisThread(cpus.front());
  if (session.prefill == kAutoPrefill && MpiSize() > 1) {
    const KvReport kv = engine.NewSession(session).kv();
    // Where question and answer choose among blocks, a context of any length is read by a star.
    const bool if_long = PolicyFactsOf(session.kv).shows_all && !kv.prefill.empty() &&
                         ParsePrefill(kv.prefill).star();
    console::WriteNotice(fmt::format("godwit: --prefill auto: {}{}\n", kv.policy,
                                     if_long ? "; a context of few blocks is read by ring" : ""));
  }
  return engine;
}

}  // namespace godwit::cli
