#include "cli/options/served_models.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

#include "base/error.h"
#include "base/machine_memory.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "base/stopwatch.h"
#include "checkpoint/model_folder.h"
#include "checkpoint/weight_facts.h"
#include "cli/options/find_model.h"
#include "console/terminal/output.h"
#include "dist/mpi.h"
#include "engine/storage_types.h"

namespace godwit::cli {
namespace {

// NAME=MODEL. A path that exists may have an equals sign.
NamedModel SplitName(const std::string& value) {
  const size_t equals = value.find('=');
  std::error_code error;
  if (equals == value.npos || std::filesystem::exists(value, error)) return {value, ""};
  NamedModel named{value.substr(equals + 1), value.substr(0, equals)};
  if (named.name.empty() || named.place.empty()) {
    Throw(ErrorKind::kInput, "expected MODEL or NAME=MODEL, found {}", Quote(value));
  }
  return named;
}

server::ModelFacts FactsOfModel(const ModelFolder& folder, const std::string& name,
                                const ModelOptions& options, const CompletionFlags& completion) {
  const WeightFacts facts =
      FactsOf(folder.spec(), folder.weights(), ParseWeightType(options.weights));
  server::ModelFacts model{.name = name,
                           .place = options.folder,
                           .about = {.family = folder.spec().family,
                                     .format = folder.is_gguf() ? "gguf" : "safetensors",
                                     .parameters = facts.parameters},
                           .vocab_size = folder.spec().vocab_size,
                           .max_context = folder.spec().max_context,
                           .weight_bytes = facts.loaded_bytes.value_or(facts.file_bytes)};
  for (const auto& [type, count] : CountTypes(folder.weights())) {
    model.about.stored_as.push_back(type);
  }
  if (facts.loaded_types) {
    model.about.loaded_as = StorageName(*facts.loaded_types);
    model.about.kv_type =
        StorageName(ChooseKvType(completion.session.kv_type, *facts.loaded_types));
  }
  return model;
}

}  // namespace

void AddModelsFlag(console::CommandLine& line, ServedModelFlags& flags) {
  line.Group("Model");
  line.Add({.names = "-m,--model",
            .value = "MODEL",
            .help = "a GGUF file, a folder in Hugging Face's format (config.json, *.safetensors, a "
                    "tokenizer), or ORG/NAME of a model that godwit pull downloaded; "
                    "ORG/NAME:Q4_K_M chooses one of its GGUF files. NAME=MODEL gives the model a "
                    "name for requests. May be repeated: requests choose with \"model\", the first "
                    "is for those that name none",
            .fallback = "the small model of godwit, models/stories-3m",
            .repeats = true},
           [&flags](const std::string& value) { flags.models.push_back(SplitName(value)); });
}

void AddLoadedFlag(console::CommandLine& line, ServedModelFlags& flags) {
  line.AddInt({.names = "--models-loaded",
               .value = "N",
               .help = "the most models that are in memory at a time: one that a request needs "
                       "takes the place of the one that was used last the longest ago",
               .fallback = "as many as memory holds"},
              flags.most_loaded, 1);
  line.AddInt({.names = "--unload-after",
               .value = "SECONDS",
               .help = "give a model's memory back when no request has used it for so long; the "
                       "next request loads it again",
               .fallback = "0: never"},
              flags.unload_after_s, 0, 1 << 30);
}

void ChooseModels(ServedModelFlags& flags, const ModelOptions& model) {
  if (flags.models.empty()) flags.models.emplace_back();
  const bool are_several = flags.models.size() > 1;
  if (are_several && MpiSize() > 1) {
    Throw(ErrorKind::kUnsupported,
          "the ranks of mpirun serve one model: give one -m, or start one process without mpirun");
  }
  if (flags.unload_after_s > 0 && MpiSize() > 1) {
    Throw(ErrorKind::kUnsupported,
          "the ranks of mpirun keep their model: leave out --unload-after");
  }
  if (are_several && !model.packed.empty() && model.packed != "none") {
    Throw(ErrorKind::kInput,
          "--packed {} is the packed copy of one model: with several -m, leave it out or give none",
          QuoteUnlessPlain(model.packed));
  }
  for (NamedModel& named : flags.models) {
    ModelOptions one;
    one.folder = named.place;
    ChooseModel(one);
    named.place = one.folder;
    if (named.name.empty()) named.name = ModelName(named.place);
  }
  std::vector<std::string> names = Names(flags.models, &NamedModel::name);
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end()) {
    Throw(ErrorKind::kInput,
          "two models are called {}: give one of them another name with -m NAME=MODEL",
          Quote(*twice));
  }
}

std::vector<server::ModelSource> ModelSources(const ServedModelFlags& flags,
                                              const ModelOptions& model,
                                              const CompletionFlags& completion,
                                              const GenerateOptions& generate) {
  std::vector<server::ModelSource> sources;
  for (const NamedModel& named : flags.models) {
    ModelOptions options = model;
    options.folder = named.place;
    const ModelFolder folder(options.folder);
    if (flags.models.size() > 1) CheckCompletionFlags(folder, completion);
    const server::ModelFacts facts = FactsOfModel(folder, named.name, options, completion);
    const auto load = [options, completion, generate](const server::NoteProgress& note) mutable {
      options.on_progress = note;
      auto engine = std::make_shared<const Engine>(
          LoadEngine(ModelFolder(options.folder), options, completion));
      auto defaults = MakeCompletionDefaults(completion, generate, engine->sampler_defaults());
      return std::make_shared<const server::LoadedModel>(std::move(engine), std::move(defaults),
                                                         completion.session);
    };
    sources.push_back({.facts = facts, .load = load});
  }
  return sources;
}

server::ModelsOptions LimitsOfModels(const ServedModelFlags& flags, const ModelOptions& model) {
  server::ModelsOptions limits;
  if (flags.most_loaded > 0) limits.most_loaded = flags.most_loaded;
  if (flags.unload_after_s > 0) limits.idle_ms = 1000.0 * static_cast<double>(flags.unload_after_s);
  limits.on_unload = [](const server::ModelFacts& facts, bool idle) {
    console::WriteNotice(fmt::format("godwit: {} {}\n", facts.name,
                                     idle ? "is unloaded until a request needs it" : "makes room"));
  };
  if (model.group == nullptr) return limits;
  limits.fits = [group = model.group, memory = model.kv_memory](const server::ModelFacts& facts) {
    const auto fits = [&] {
      // Memory that the caches were promised is not free.
      const int64_t caches = std::max<int64_t>(0, memory.bytes - group->used_kv_bytes());
      return facts.weight_bytes + caches <=
             ReadMachineMemoryBeside(group->mapped_bytes()).available_bytes;
    };
    if (fits()) return true;
    group->ForgetTexts();
    return fits();
  };
  return limits;
}

}  // namespace godwit::cli
