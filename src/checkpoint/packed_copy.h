// A packed copy of a model's weights (model/packed_header.h), and the one way to load a model by
// it.
//
// It lies beside the model: FOLDER/model.int4.godwit, or NAME.auto.godwit of NAME.gguf, by what the
// weights are loaded as. Where nothing can be written there, it lies in a folder of this user's. It
// is used if it is of this program's version and of the model as it is
// (checkpoint/packed_sources.h), and if not, one line says why.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/thread_pool.h"
#include "checkpoint/model_folder.h"
#include "dist/communicator.h"
#include "model/decoder.h"
#include "model/loader.h"

namespace godwit {

struct PackedOptions {
  bool use = true;    // one that is there
  bool make = false;  // where there is none that is right
  // Where it is. Empty: beside the model, else in `folder`.
  std::string file;
  // For copies of models whose own folders cannot be written. Empty: there is none.
  std::string folder;
};

// Loads the decoder that LoadDecoder makes, to the bit: of a packed copy, which stays mapped, or of
// the model's files. A copy that cannot be used or made is a warning, unless options.file names it.
// Then it throws, Error(kFormat) for one that is not of this model. Throws as LoadDecoder does.
//
// ranks: as LoadDecoder takes them. A copy holds a whole model, so ranks that share the weights
// load the model's files. Throws Error(kUnsupported) if options name a copy or ask for one.
std::unique_ptr<Decoder> LoadModel(const ModelFolder& model, ThreadPool& pool,
                                   const LoadHooks& hooks, std::optional<DType> storage,
                                   const PackedOptions& options,
                                   std::shared_ptr<Communicator> ranks = nullptr);

// Makes a copy, in the place of one that may exist, and returns where. Throws Error(kIo) where it
// cannot be written, or before it is begun if the disk has no space for it. Throws Error(kInput)
// for a file in its place that is no such copy, and if the model changes meanwhile. Throws as
// LoadDecoder does.
std::filesystem::path PackModel(const ModelFolder& model, ThreadPool& pool, const LoadHooks& hooks,
                                std::optional<DType> storage, const PackedOptions& options);

// Reads all of the copy, and of the model, and returns where it is. Throws Error(kIo) where there
// is none, Error(kFormat) and Error(kUnsupported) that say what is wrong.
std::filesystem::path VerifyPackedCopy(const ModelFolder& model, ThreadPool& pool,
                                       const LoadHooks& hooks, std::optional<DType> storage,
                                       const PackedOptions& options);

}  // namespace godwit
