#include "cli/options/inspect_options.h"

#include "base/error.h"
#include "base/name_list.h"
#include "cli/options/kv_options.h"
#include "console/options/parse_value.h"
#include "model/shapes.h"

namespace godwit::cli {
namespace {

void AddActivationsFlags(console::CommandLine& line, InspectOptions& options) {
  line.Group("Activations");
  line.Add({.names = "--activations",
            .value = "LAYER",
            .help = "print the largest activation and weight of every channel instead, before and "
                    "after smoothing. LAYER is the number of a decoder layer, or a name of linear "
                    "layers (*.down_proj)"},
           options.layers);
  line.RefusePlot();
  AddSmoothingFlags(line, options.smoothing);
  AddCalibrationFlags(line, options.calibration);
  // The weights are inspected as stored.
  for (const char* other : {"--tensors", "--weights", "--numa"}) {
    line.Exclusive({"--activations", other});
  }
  for (const char* flag : {"--calib", "--smooth", "--alpha", "--lossy", "--samples", "--seq-len"}) {
    line.Needs(flag, {"--activations"});
  }
}

void AddKvExplanationFlags(console::CommandLine& line, InspectOptions& options) {
  constexpr int64_t kMaxTokens = int64_t{1} << 30;
  line.Group("Cache policies");
  AddExplainedKvFlags(line, options.session, options.kvs);
  line.Add({.names = "-c,--ctx-size",
            .value = "N,...",
            .help = "lengths of texts in tokens: a list, or a range such as 4096-65536*4",
            .fallback = "4096,16384,131072,1048576",
            .is_verbs_own = true},
           [&options](const std::string& value) {
             options.contexts = console::ParseIntList(value, 1, kMaxTokens);
           });
  line.Add(
      {.names = "--shape",
       .value = "NAME",
       .help = fmt::format(
           "take a model of this shape instead of a checkpoint: {}, or the path of a config.json",
           NameList(AllShapes(), &ModelShape::name)),
       .choices = Names(AllShapes(), &ModelShape::name)},
      options.shape);
  line.Exclusive({"--model", "--shape"});
  for (const char* other : {"--activations", "--tensors"}) line.Exclusive({"--kv", other});
}

void CheckKvExplanation(const InspectOptions& options) {
  if (!options.kvs.empty()) return;
  if (options.shape)
    Throw(ErrorKind::kInput, "--shape shows what a cache policy costs: it needs --kv");
  if (!options.contexts.empty()) {
    Throw(ErrorKind::kInput, "-c shows what a cache policy costs: it needs --kv");
  }
}

}  // namespace

InspectOptions ParseInspect(std::span<const std::string> arguments) {
  InspectOptions options;
  console::CommandLine line(
      "inspect", "[-m MODEL] [flags]",
      "Describes a model, and the context length that fits into this machine. Reads everything but "
      "the weights; with --activations also these, and a text. With --kv: what a cache policy "
      "does, and its cost.");
  AddModelFlag(line, options.model);
  AddThreadFlags(line, options.model);
  AddWeightsFlag(line, options.model);
  AddNumaFlag(line, options.model);
  line.AddInt({.names = "--tensor-parallel",
               .value = "N",
               .help = "plan the memory of one of N ranks that share the weights"},
              options.model.tensor_parallel, 1, kMaxTensorParallel);
  line.Add({.names = "--gpu-memory",
            .value = "SIZE",
            .help = "plan for a GPU of which the model takes so much memory, as with --device cuda "
                    "of godwit run; none needs to be here"},
           [&options](const std::string& value) {
             options.model.gpu_memory_bytes = console::ParseBytes(value);
           });
  line.Add({.names = "--gpu-attention",
            .value = "",
            .help = "with --gpu-memory: plan for contexts that the GPU reads, too (--prefill gpu)"},
           options.model.gpu_attention);
  line.AddInt(
      {.names = "--gpu-window",
       .value = "N",
       .help = "with --gpu-memory: plan for keys and values of N tokens that the GPU keeps, "
               "as for --gpu-window of godwit run",
       .fallback = "none"},
      options.model.gpu_window, 64, int64_t{1} << 30);
  line.Needs("--gpu-attention", {"--gpu-memory"});
  line.Needs("--gpu-window", {"--gpu-memory"});
  line.Add({.names = "-md,--model-draft",
            .value = "MODEL",
            .help = "plan the memory with this draft model beside, as for godwit run"},
           options.model.draft_model);
  line.Group("Output");
  line.Add({.names = "--tensors", .value = "", .help = "list the tensors of every layer"},
           options.tensors);
  line.Add({.names = "--json", .value = "", .help = "print one JSON object"}, options.json);
  AddActivationsFlags(line, options);
  AddKvExplanationFlags(line, options);
  line.Parse(arguments);
  if (options.layers) RequireCalibrationText(options.calibration);
  CheckKvExplanation(options);
  return options;
}

}  // namespace godwit::cli
