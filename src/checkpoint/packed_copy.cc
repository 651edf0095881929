#include "checkpoint/packed_copy.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/error.h"
#include "base/file.h"
#include "base/machine_memory.h"
#include "base/new_file.h"
#include "base/own_folder.h"
#include "base/quote.h"
#include "checkpoint/packed_sources.h"
#include "godwit/version.h"
#include "model/packed_file.h"

namespace godwit {
namespace {

namespace fs = std::filesystem;

std::string NameOf(const fs::path& path) { return QuoteUnlessPlain(path.native()); }

std::string WeightsName(std::optional<DType> storage) {
  const auto found = std::ranges::find(kWeightTypes, storage, [](const WeightType& type) {
    return std::optional<DType>(type.dtype);
  });
  return found == std::end(kWeightTypes) ? "auto" : std::string(found->name);
}

std::string Ending(std::optional<DType> storage) {
  return fmt::format(".{}.godwit", WeightsName(storage));
}

fs::path PathBeside(const ModelFolder& model, std::optional<DType> storage) {
  if (!model.is_gguf()) return fs::path(model.path()) / ("model" + Ending(storage));
  fs::path file = model.weight_files().front();
  return file.replace_extension(Ending(storage));
}

// The path of a copy in a folder for many models. Models of one name differ by their location.
fs::path PathIn(const fs::path& folder, const ModelFolder& model, std::optional<DType> storage) {
  const fs::path place = fs::canonical(model.path());
  const std::string& text = place.native();
  return folder / fmt::format("{}-{:016x}{}", place.stem().native(),
                              Checksum(std::as_bytes(std::span(text))), Ending(storage));
}

// Possible places of a copy, the best first.
std::vector<fs::path> Places(const ModelFolder& model, std::optional<DType> storage,
                             const PackedOptions& options) {
  if (!options.file.empty()) return {options.file};
  std::vector<fs::path> places = {PathBeside(model, storage)};
  if (!options.folder.empty()) places.push_back(PathIn(options.folder, model, storage));
  return places;
}

// Whether the copy can be trusted. A user that can write beside a model can write into it, too;
// elsewhere the file must belong to this user.
bool IsTrusted(const fs::path& place, const PackedOptions& options) {
  return options.folder.empty() || place.parent_path() != options.folder || IsOwnFile(place);
}

// Throws unless this program made the copy from this model, in this storage.
void Check(const PackedFile& file, const ModelFolder& model, ThreadPool& pool, bool read_all,
           const LoadHooks& hooks, std::optional<DType> storage) {
  const PackedInfo& info = file.info();
  if (info.godwit != GODWIT_VERSION) {
    Throw(ErrorKind::kUnsupported, "{}: made by godwit {}, while this is " GODWIT_VERSION,
          NameOf(file.path()), QuoteUnlessPlain(info.godwit));
  }
  if (info.weights != WeightsName(storage)) {
    Throw(ErrorKind::kFormat, "{}: holds the weights as {}, expected {}", NameOf(file.path()),
          QuoteUnlessPlain(info.weights), WeightsName(storage));
  }
  bool read = false;
  const auto on_read = [&](int64_t done, int64_t total) {
    read = true;
    if (hooks.progress) hooks.progress(done, total);
    if (hooks.cancel != nullptr) hooks.cancel->ThrowIfCancelled();
  };
  if (const auto change = ChangeSince(info, model, pool, read_all, on_read)) {
    Throw(ErrorKind::kFormat, "{}: out of date: {}", NameOf(file.path()), *change);
  }
  if (!read || read_all || !hooks.warn) return;
  hooks.warn(
      fmt::format("{}: the files of the model have new times since they were packed, so all of "
                  "them were read; their content is the same",
                  NameOf(file.path())));
}

std::unique_ptr<Decoder> Load(const fs::path& place, const ModelFolder& model, ThreadPool& pool,
                              const LoadHooks& hooks, std::optional<DType> storage) {
  const PackedFile file(place);
  Check(file, model, pool, /*read_all=*/false, hooks, storage);
  auto decoder = LoadPackedDecoder(model.spec(), model.weights(), pool, storage, file);
  if (hooks.warn) std::ranges::for_each(file.info().warnings, hooks.warn);
  return decoder;
}

void Begin(const LoadHooks& hooks, std::string_view stage) {
  if (hooks.stage) hooks.stage(stage);
}

// Whether loading from the model's own files would fail as well.
bool EndsLoading(const Error& error) {
  return error.kind() == ErrorKind::kMemory || error.kind() == ErrorKind::kCancelled;
}

fs::path NewCopyPath(const ModelFolder& model, std::optional<DType> storage,
                     const PackedOptions& options) {
  const std::vector<fs::path> places = Places(model, storage, options);
  const fs::path& best = places.front();
  if (places.size() == 1 || access(fs::absolute(best).parent_path().c_str(), W_OK) == 0) {
    return best;
  }
  MakeOwnFolder(options.folder);
  return places.back();
}

// Refuses to replace a file that is no packed copy: a mistyped name must not cost a model.
void RefuseOther(const fs::path& place) {
  if (!IsListed(place) || BeginsAsPacked(MappedFile(place).Span())) return;
  Throw(ErrorKind::kInput, "{}: exists already and is no packed copy: choose another name",
        NameOf(place));
}

void RequireDiskSpace(const fs::path& place, int64_t bytes) {
  std::error_code error;
  const fs::space_info room = fs::space(fs::absolute(place).parent_path(), error);
  if (error || static_cast<uint64_t>(bytes) <= room.available) return;  // the write reports it
  Throw(ErrorKind::kIo, "{}: a packed copy takes {}, and {} are free on the disk", NameOf(place),
        FormatBytes(bytes), FormatBytes(static_cast<int64_t>(room.available)));
}

[[noreturn]] void RefuseChange(const ModelFolder& model) {
  Throw(ErrorKind::kInput, "{}: the model changed while it was packed: run the command again",
        NameOf(model.path()));
}

}  // namespace

fs::path PackModel(const ModelFolder& model, ThreadPool& pool, const LoadHooks& hooks,
                   std::optional<DType> storage, const PackedOptions& options) {
  const fs::path place = NewCopyPath(model, storage, options);
  RefuseOther(place);
  // The model is opened again after this moment, so that the files read are those described here.
  PackedInfo info{.godwit = GODWIT_VERSION,
                  .weights = WeightsName(storage),
                  .config_checksum = ConfigChecksum(model),
                  .sources = StampSettledSources(model)};
  const std::vector<PackedSource> stamps = info.sources;
  const ModelFolder opened(model.path());
  RequireDiskSpace(place, LoadedBytes(opened.tensors(), storage));
  RemoveAbandoned(fs::absolute(place).parent_path(), place.filename().native());
  NewFile file(place);
  if (place.parent_path() != options.folder) file.CopyPermissions(opened.weight_files().front());
  PackedWriter writer(file);
  LoadHooks noted = hooks;
  noted.warn = [&](const std::string& warning) {
    info.warnings.push_back(warning);
    if (hooks.warn) hooks.warn(warning);
  };
  PackDecoder(opened.spec(), opened.weights(), pool, noted, storage, writer);
  AddChecksums(
      opened, pool,
      [&](int64_t, int64_t) {
        if (hooks.cancel != nullptr) hooks.cancel->ThrowIfCancelled();
      },
      info.sources);
  if (StampSources(opened) != stamps || ConfigChecksum(opened) != info.config_checksum) {
    RefuseChange(model);
  }
  writer.Finish(std::move(info));
  file.Commit();
  // The file's pages leave memory, so that it is read anew. Written while the model's files filled
  // memory, 15 % of 5 GiB lay on large pages; read again, 71 %. On small pages a token takes 10 %
  // longer.
  file.DropFromPageCache();
  return place;
}

std::unique_ptr<Decoder> LoadModel(const ModelFolder& model, ThreadPool& pool,
                                   const LoadHooks& hooks, std::optional<DType> storage,
                                   const PackedOptions& options,
                                   std::shared_ptr<Communicator> ranks) {
  if (ranks != nullptr) {
    if (options.make || !options.file.empty()) {
      Throw(ErrorKind::kUnsupported,
            "a packed copy holds a whole model, and {} ranks share the weights: load the model's "
            "own files",
            ranks->size());
    }
    Begin(hooks, "packing this rank's weights");
    return LoadDecoder(model.spec(), model.weights(), pool, hooks, storage, std::move(ranks));
  }
  const bool named = !options.file.empty();
  const auto warn = [&](const std::string& what, std::string_view consequence) {
    if (hooks.warn) hooks.warn(fmt::format("{}; {}", what, consequence));
  };
  std::string problem;  // of the best place that has one
  for (const fs::path& place : Places(model, storage, options)) {
    if (!options.use && !options.make) break;
    if (!IsTrusted(place, options) || (!IsListed(place) && (!named || options.make))) continue;
    try {
      Begin(hooks, "mapping the packed copy");
      return Load(place, model, pool, hooks, storage);
    } catch (const Error& error) {
      if (EndsLoading(error) || (named && !options.make)) throw;
      if (problem.empty()) problem = error.what();
    }
  }
  if (options.make) {
    if (!problem.empty()) warn(problem, "packing it again");
    try {
      Begin(hooks, "packing the weights into a copy");
      const fs::path place = PackModel(model, pool, hooks, storage, options);
      LoadHooks quiet = hooks;  // the warnings have been given
      quiet.warn = nullptr;
      ModelFolder again(model.path());
      if (model.step_scales()) again.RequestStepScales();
      if (model.spec().predicts) again.RequestPrediction();
      return Load(place, again, pool, quiet, storage);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kIo || named) throw;
      problem = error.what();
    }
  }
  if (!problem.empty()) warn(problem, "loading the model without a packed copy");
  Begin(hooks, "packing the weights");
  return LoadDecoder(model.spec(), model.weights(), pool, hooks, storage);
}

fs::path VerifyPackedCopy(const ModelFolder& model, ThreadPool& pool, const LoadHooks& hooks,
                          std::optional<DType> storage, const PackedOptions& options) {
  const std::vector<fs::path> places = Places(model, storage, options);
  const auto found =
      std::ranges::find_if(places, [](const fs::path& place) { return IsListed(place); });
  if (found == places.end()) {
    Throw(ErrorKind::kIo,
          "{}: there is no such packed copy of the model: make one with godwit pack",
          NameOf(places.front()));
  }
  const PackedFile file(*found);
  Check(file, model, pool, /*read_all=*/true, hooks, storage);
  file.LoadIntoMemory(pool);
  return *found;
}

}  // namespace godwit
