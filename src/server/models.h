// Models: the models that a server answers with. A model is loaded when a request needs it, and
// unloaded when another needs its room and no request uses it. Thread-safe.
//
// One thread loads, one model at a time, in the order of the first requests for each. If it finds
// no room, it unloads the model that was used last the longest ago. If requests use all of them, it
// waits for those of one model. New requests for that model wait, too: otherwise they could keep
// another model out for ever. It also
// unloads models that no request has used for some time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/stopwatch.h"
#include "chat/completion_request.h"
#include "godwit/engine.h"

namespace godwit::server {

// Facts about a model that its engine does not know.
struct ModelAbout {
  std::string family;  // "llama"
  std::string format;  // the files' format: "gguf", "safetensors"
  int64_t parameters = 0;
  std::vector<std::string> stored_as;  // types of its tensors, the most frequent first
  // Types in memory: of weights, and of keys and values.
  std::string loaded_as, kv_type;
};

// Facts about a model that are known before it is loaded.
struct ModelFacts {
  std::string name;   // stands in answers, and requests choose by it
  std::string place;  // its folder or file, which answers leave out
  ModelAbout about;
  int64_t vocab_size = 0;
  int64_t max_context = 0;   // in tokens
  int64_t weight_bytes = 0;  // of memory, as estimated
};

// Facts about a model that loading it shows.
struct ModelLimits {
  chat::CompletionDefaults defaults;
  int64_t context = 0;  // the most tokens of a text; 0: no limit
  bool has_template = false;
  int64_t weight_bytes = 0;
};

// A model in memory, as requests use it.
struct LoadedModel {
  // session: the options of requests that choose none.
  LoadedModel(std::shared_ptr<const Engine> engine, chat::CompletionDefaults defaults,
              const SessionOptions& session);

  std::shared_ptr<const Engine> engine;
  Session session;  // tokenizes
  ModelLimits limits;
};

// A callback for the progress of loading, in bytes.
using NoteProgress = std::function<void(int64_t done_bytes, int64_t total_bytes)>;

struct ModelSource {
  ModelFacts facts;
  // Loads the model; throws Error. Called by one thread at a time.
  std::function<std::shared_ptr<const LoadedModel>(const NoteProgress& note)> load;
};

struct ModelsOptions {
  int64_t most_loaded = std::numeric_limits<int64_t>::max();
  // Whether the weights fit into memory now. It may free memory that no request needs. Empty: they
  // always do.
  std::function<bool(const ModelFacts&)> fits;
  // A model goes when no request has used it for so long.
  double idle_ms = std::numeric_limits<double>::infinity();
  // The callback for a model that is about to go, on the loading thread. idle: because no request
  // used it, else because another needs its room.
  std::function<void(const ModelFacts&, bool idle)> on_unload;
  NowMs now_ms = SteadyMs;
};

class Models {
 public:
  // sources: one model or more, with different names; requests that name none are for the first.
  Models(std::vector<ModelSource> sources, ModelsOptions options = {});
  // Waits for a model that is being loaded. No request may use a model.
  ~Models();
  Models(const Models&) = delete;
  Models& operator=(const Models&) = delete;

  size_t size() const { return entries_.size(); }
  const ModelFacts& facts(size_t model) const { return entries_[model].source.facts; }
  std::vector<std::string> Names() const;

  // The model that a request names; nullopt: none. An empty name is the first model's, and with one
  // model so is any name.
  std::optional<size_t> Find(std::string_view name) const;

  // Loads models in their order as long as there is room, on the calling thread. note: the progress
  // of them all. Throws what loading throws.
  void LoadThoseThatFit(const NoteProgress& note);

  // A model in use by a request, for its lifetime.
  class Use {
   public:
    Use(Models& models, size_t model) : models_(&models), model_(model) {}
    ~Use() {
      if (models_ != nullptr) models_->Release(model_);
    }
    Use(Use&& other) noexcept
        : models_(std::exchange(other.models_, nullptr)), model_(other.model_) {}
    Use& operator=(Use&&) = delete;
    const LoadedModel& operator*() const { return *models_->entries_[model_].loaded; }

   private:
    Models* models_;
    size_t model_;
  };

  // Takes a model into use, and waits until it is loaded. on_wait: called by this thread many times
  // a second meanwhile, with the progress of loading. Throws Error(kCancelled) if `gone` is set
  // while it waits, and what loading threw.
  Use Take(size_t model, const CancelToken& gone,
           const std::function<void(double progress)>& on_wait = {});

  enum class State { kUnloaded, kLoading, kLoaded };
  struct Status {
    State state = State::kUnloaded;
    bool is_leaving = false;  // it is loaded, but new requests wait
    double progress = 0;      // of loading, from 0 to 1
    int64_t loads = 0;        // times that the model was loaded
    // The limits that the model had when it was loaded last; null: it never was.
    std::shared_ptr<const ModelLimits> limits;
    std::shared_ptr<const LoadedModel> loaded;  // null: not now
  };
  Status status(size_t model) const;
  bool is_loading() const;
  // Engine::ranks_ended of any model in memory.
  bool ranks_ended() const;

 private:
  // The wait of requests for one load of a model.
  struct Wait {
    int64_t requests = 0;
    bool done = false;
    std::exception_ptr error;  // why it failed; null: the requests use the model
  };
  struct Entry {
    ModelSource source;
    std::shared_ptr<const LoadedModel> loaded = nullptr;
    std::shared_ptr<const ModelLimits> limits = nullptr;
    int64_t users = 0;        // requests
    double used_ms = 0;       // the end of its last use, or of its loading
    bool is_leaving = false;  // new requests wait for the next load
    bool is_loading = false;
    double progress = 0;
    int64_t loads = 0;
    std::shared_ptr<Wait> wait = nullptr;  // null: no request waits
  };

  void Release(size_t model);
  // Functions of the loading thread, with the mutex locked.
  void Loop();
  void Load(size_t model, std::unique_lock<std::mutex>& lock);
  bool HasRoom(size_t model, std::unique_lock<std::mutex>& lock) const;
  // Unloads a model that no request uses, or waits for those of one that is leaving. Takes the one
  // that was used last the longest ago. False: none is loaded.
  bool MakeRoom(std::unique_lock<std::mutex>& lock);
  // Unloads a model that has been idle for long, or waits for what changes that.
  void WaitForIdle(std::unique_lock<std::mutex>& lock);
  // entry: loaded, and used by no request.
  void Unload(Entry& entry, bool idle, std::unique_lock<std::mutex>& lock);
  void Keep(Entry& entry, std::shared_ptr<const LoadedModel> loaded);

  ModelsOptions options_;
  std::vector<Entry> entries_;  // of a fixed number
  mutable std::mutex mutex_;    // guards the entries' members but `source`, and the members below
  std::condition_variable changed_;
  std::deque<size_t> wanted_;  // models that requests wait for, in the order of the requests
  bool stop_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace godwit::server
