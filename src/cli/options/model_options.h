// The flags of every verb that loads a model.
#pragma once

#include <cstdint>
#include <functional>
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

struct ModelOptions {
  std::string folder;  // once chosen; before, as -m names it
  int threads = 0;     // 0: one for every core
  std::string isa;     // empty: the best
  std::string weights = "auto";
  bool pack = false;          // LoadOptions
  std::string packed;         // likewise
  std::string numa;           // empty: none
  bool needs_text = true;     // a tokenizer, too
  std::string chat_template;  // LoadOptions::chat_template
  KvMemory kv_memory;
  CacheOptions cache;
  float prompt_slowdown = 0;  // LoadOptions
  int rank_silence_s = 10;    // LoadOptions::mpi_silence_ms
  // LoadOptions::on_progress, beside the line on standard error.
  std::function<void(int64_t done_bytes, int64_t total_bytes)> on_progress = {};
};

void AddModelFlag(console::CommandLine& line, ModelOptions& options);    // only --model
void AddThreadFlags(console::CommandLine& line, ModelOptions& options);  // --threads, --isa
// Those, --weights, --numa, --pack and --packed.
void AddComputeFlags(console::CommandLine& line, ModelOptions& options);
void AddWeightsFlag(console::CommandLine& line, ModelOptions& options);
void AddPackFlags(console::CommandLine& line, ModelOptions& options);
void AddRankFlags(console::CommandLine& line, ModelOptions& options);
void AddIsaFlag(console::CommandLine& line, ModelOptions& options);
void AddNumaFlag(console::CommandLine& line, ModelOptions& options);

// On standard error, if there are more threads than cores.
void WarnAboutThreads(int threads);

// On standard error, what DecoderSpec::warnings says.
void WarnAboutSpec(const DecoderSpec& spec);

// What --pack and --packed ask for. Throws Error(kInput) where they contradict each other.
PackedOptions PackedCopy(const ModelOptions& options);

// The folder of --model (FindModel), or without it the project's own small model. Throws
// Error(kInput) that says how to name one if that is not there.
void ChooseModel(ModelOptions& options);

// Throws what a session with these options would throw, before anything is allocated. Warns, on
// standard error, of one that keeps more than the model was made for.
void CheckKv(const DecoderSpec& spec, const SessionOptions& session);

// Shows progress and warnings on standard error. What can be refused without reading the weights,
// such as a misspelt --kv, is refused first. kv_specs: what sessions will be opened with, if not
// with session.kv.
Engine LoadEngine(const ModelOptions& options, const SessionOptions& session,
                  std::span<const std::string> kv_specs = {});
// The same, where the folder is open already. Nothing of it is needed afterwards.
Engine LoadEngine(const ModelFolder& model, const ModelOptions& options,
                  const SessionOptions& session, std::span<const std::string> kv_specs = {});

}  // namespace godwit::cli
