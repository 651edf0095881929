// The models of `godwit serve`: -m, once or several times, and how the server loads them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/options/completion_defaults.h"
#include "cli/options/model_options.h"
#include "console/options/command_line.h"
#include "server/models.h"

namespace godwit::cli {

// A model as -m names it, until ChooseModels; then its folder or file, and the name for requests.
struct NamedModel {
  std::string place;
  std::string name;
};

struct ServedModelFlags {
  std::vector<NamedModel> models;  // as given
  int64_t most_loaded = 0;         // 0: as many as memory holds
  int64_t unload_after_s = 0;      // 0: never
};

// Adds a repeatable --model.
void AddModelsFlag(console::CommandLine& line, ServedModelFlags& flags);
// Adds --models-loaded and --unload-after.
void AddLoadedFlag(console::CommandLine& line, ServedModelFlags& flags);

// ChooseModel for each, or for the project's own small model if there is none. A model has the name
// that NAME=MODEL gives it, or that of ModelName. Throws Error(kInput) for two of one name, and for
// flags and ranks that cannot serve several models.
void ChooseModels(ServedModelFlags& flags, const ModelOptions& model);

// The models as the server loads them. Options that a model cannot take are refused now. generate:
// from MakeGenerateOptions. The result keeps copies of the options.
std::vector<server::ModelSource> ModelSources(const ServedModelFlags& flags,
                                              const ModelOptions& model,
                                              const CompletionFlags& completion,
                                              const GenerateOptions& generate);

// The limits on models that are in memory together. model: with the group of their engines, if
// there are several.
server::ModelsOptions LimitsOfModels(const ServedModelFlags& flags, const ModelOptions& model);

}  // namespace godwit::cli
