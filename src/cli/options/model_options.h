// The flags of every verb that loads a model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "checkpoint/packed_copy.h"
#include "cli/options/cache_options.h"
#include "cli/options/kv_options.h"
#include "console/options/command_line.h"
#include "godwit/engine.h"
#include "model/spec.h"

namespace godwit {
class ModelFolder;
}

namespace godwit::cli {

// The most ranks that --tensor-parallel takes.
inline constexpr int kMaxTensorParallel = 1024;

struct ModelOptions {
  std::string folder;  // as -m names it, until ChooseModel
  int threads = 0;     // 0: one for every core
  std::string isa;     // empty: the best
  std::string weights = "auto";
  std::string device;            // LoadOptions::device
  int64_t gpu_memory_bytes = 0;  // LoadOptions::gpu_memory_bytes
  bool gpu_attention = false;    // LoadOptions::gpu_attention; also with a session that needs it
  int64_t gpu_window = 0;        // LoadOptions::gpu_window, or that of a session in the same way
  int64_t gpu_window_texts = 1;  // LoadOptions::gpu_window_texts
  bool pack = false;             // LoadOptions::pack
  std::string packed;            // LoadOptions::packed
  std::string numa;              // empty: none
  bool needs_text = true;        // whether a tokenizer is loaded, too
  std::string chat_template;     // LoadOptions::chat_template
  KvMemory kv_memory;
  CacheOptions cache;
  float prompt_slowdown = 0;                           // LoadOptions::prompt_slowdown
  int rank_silence_s = 10;                             // LoadOptions::mpi_silence_ms
  int tensor_parallel = 1;                             // LoadOptions::tensor_parallel
  std::string draft_model;                             // LoadOptions::draft_model
  bool step_scales = false;                            // LoadOptions::step_scales
  bool mtp = false;                                    // LoadOptions::mtp
  std::string eagle3;                                  // LoadOptions::eagle3
  std::shared_ptr<const EngineGroup> group = nullptr;  // LoadOptions::group
  // LoadOptions::on_progress, beside the line on standard error.
  std::function<void(int64_t done_bytes, int64_t total_bytes)> on_progress = {};
};

void AddModelFlag(console::CommandLine& line, ModelOptions& options);    // only --model
void AddThreadFlags(console::CommandLine& line, ModelOptions& options);  // --threads, --isa
// Adds --threads, --isa, --device, --gpu-memory, --weights, --numa, --pack and --packed.
void AddComputeFlags(console::CommandLine& line, ModelOptions& options);
void AddWeightsFlag(console::CommandLine& line, ModelOptions& options);
void AddDeviceFlags(console::CommandLine& line, ModelOptions& options);  // --device, --gpu-memory
void AddPackFlags(console::CommandLine& line, ModelOptions& options);
void AddRankFlags(console::CommandLine& line, ModelOptions& options);
void AddIsaFlag(console::CommandLine& line, ModelOptions& options);
void AddNumaFlag(console::CommandLine& line, ModelOptions& options);

// Warns on standard error of more threads than cores.
void WarnAboutThreads(int threads);

// Writes DecoderSpec::warnings to standard error.
void WarnAboutSpec(const DecoderSpec& spec);

// The options that --pack and --packed ask for. Throws Error(kInput) if they contradict each other.
PackedOptions PackedCopy(const ModelOptions& options);

// Replaces the name of --model by its folder (FindModel), or a missing one by the project's own
// small model. Throws Error(kInput), which says how to name a model, if that is not there.
void ChooseModel(ModelOptions& options);

// "GPU 0 (NVIDIA H100): 12 of 32 layers, 5.1 GiB of weights and 210 MiB for a step, of 6.0 GiB that
// may be used".
std::string DescribeDevice(const DeviceUse& use);
// " (all without experts or MLP, 20 with shared experts)", of so many layers on a GPU; or nothing.
std::string DescribeHostMlps(int64_t layers, int64_t host_mlps, int64_t shared_mlps);

// Throws what a session with these options would throw, before anything is allocated. Warns on
// standard error if it may keep more tokens than the model was made for.
void CheckKv(const DecoderSpec& spec, const SessionOptions& session);

// Loads a model, with progress and warnings on standard error. Options that can be refused without
// reading the weights, such as a misspelt --kv, are refused first. kv_specs: the specs of later
// sessions, if not session.kv.
Engine LoadEngine(const ModelOptions& options, const SessionOptions& session,
                  std::span<const std::string> kv_specs = {});
// The group of engines that several models with these options share.
std::shared_ptr<const EngineGroup> NewGroup(const ModelOptions& options);
// LoadEngine for an open folder, which is not needed afterwards.
Engine LoadEngine(const ModelFolder& model, const ModelOptions& options,
                  const SessionOptions& session, std::span<const std::string> kv_specs = {});

}  // namespace godwit::cli
