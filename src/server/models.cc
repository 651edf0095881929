#include "server/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/next_poll.h"
#include "base/quote.h"

namespace godwit::server {
namespace {

// Whether the model has a chat template. A broken template disables chats only, each of which says
// so.
bool HasTemplate(const Engine& engine) {
  try {
    return engine.has_chat_template();
  } catch (const Error&) {
    return false;
  }
}

int64_t ContextOf(const Session& session) {
  const int64_t limit = session.limit_tokens();
  return limit == INT64_MAX ? 0 : limit;
}

double PartOf(int64_t done_bytes, int64_t total_bytes) {
  if (total_bytes <= 0) return 0;
  return std::clamp(static_cast<double>(done_bytes) / static_cast<double>(total_bytes), 0.0, 1.0);
}

// Loading fails for reasons that are not those of the request.
std::exception_ptr LoadingFailed(const std::string& name) {
  try {
    throw;
  } catch (const Error& error) {
    const bool is_ours = error.kind() == ErrorKind::kMemory || error.kind() == ErrorKind::kIo;
    return std::make_exception_ptr(
        Error(is_ours ? error.kind() : ErrorKind::kIo,
              fmt::format("the model {} cannot be loaded: {}", Quote(name), error.what())));
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

LoadedModel::LoadedModel(std::shared_ptr<const Engine> loaded, chat::CompletionDefaults defaults,
                         const SessionOptions& options)
    : engine(std::move(loaded)),
      session(engine->NewSession(options)),
      limits{.defaults = std::move(defaults),
             .context = ContextOf(session),
             .has_template = HasTemplate(*engine),
             .weight_bytes = engine->weight_bytes()} {}

Models::Models(std::vector<ModelSource> sources, ModelsOptions options)
    : options_(std::move(options)) {
  for (ModelSource& source : sources) entries_.push_back({.source = std::move(source)});
  thread_ = std::thread([this] { Loop(); });
}

Models::~Models() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::vector<std::string> Models::Names() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) names.push_back(entry.source.facts.name);
  return names;
}

std::optional<size_t> Models::Find(std::string_view name) const {
  if (name.empty() || entries_.size() == 1) return 0;
  const auto found = std::ranges::find_if(
      entries_, [&](const Entry& entry) { return entry.source.facts.name == name; });
  if (found == entries_.end()) return std::nullopt;
  return static_cast<size_t>(found - entries_.begin());
}

void Models::LoadThoseThatFit(const NoteProgress& note) {
  std::unique_lock lock(mutex_);
  int64_t total = 0, before = 0;
  for (const Entry& entry : entries_) total += entry.source.facts.weight_bytes;
  for (size_t i = 0; i < entries_.size(); ++i) {
    // The first one is loaded in any case: its error says how much memory is missing.
    if (i > 0 && !HasRoom(i, lock)) return;
    Entry& entry = entries_[i];
    lock.unlock();
    const int64_t bytes = entry.source.facts.weight_bytes;
    auto loaded = entry.source.load([&](int64_t done, int64_t all) {
      const double part = PartOf(done, all);
      entries_.size() == 1
          ? note(done, all)
          : note(before + static_cast<int64_t>(part * static_cast<double>(bytes)), total);
    });
    before += bytes;
    lock.lock();
    Keep(entry, std::move(loaded));
    changed_.notify_all();
  }
}

Models::Use Models::Take(size_t model, const CancelToken& gone,
                         const std::function<void(double progress)>& on_wait) {
  std::unique_lock lock(mutex_);
  Entry& entry = entries_[model];
  if (entry.loaded != nullptr && !entry.is_leaving) {
    ++entry.users;
    return {*this, model};
  }
  if (entry.wait == nullptr) {
    entry.wait = std::make_shared<Wait>();
    wanted_.push_back(model);
    changed_.notify_all();
  }
  const std::shared_ptr<Wait> wait = entry.wait;
  ++wait->requests;
  while (!wait->done) {
    changed_.wait_until(lock, NextPoll());
    if (on_wait && !wait->done) {
      const double progress = entry.is_loading ? entry.progress : 0;
      lock.unlock();
      on_wait(progress);
      lock.lock();
    }
    if (wait->done || !gone.cancelled()) continue;
    if (--wait->requests == 0 && !entry.is_loading) {  // no request is left
      std::erase(wanted_, model);
      entry.wait = nullptr;
      changed_.notify_all();
    }
    gone.ThrowIfCancelled();
  }
  lock.unlock();
  if (wait->error) std::rethrow_exception(wait->error);
  Use use(*this, model);
  gone.ThrowIfCancelled();
  return use;
}

void Models::Release(size_t model) {
  {
    const std::lock_guard lock(mutex_);
    --entries_[model].users;
    entries_[model].used_ms = options_.now_ms();
  }
  changed_.notify_all();
}

void Models::Keep(Entry& entry, std::shared_ptr<const LoadedModel> loaded) {
  entry.limits = std::make_shared<const ModelLimits>(loaded->limits);
  entry.loaded = std::move(loaded);
  entry.used_ms = options_.now_ms();
  ++entry.loads;
}

Models::Status Models::status(size_t model) const {
  const std::lock_guard lock(mutex_);
  const Entry& entry = entries_[model];
  return {.state = entry.loaded != nullptr ? State::kLoaded
                   : entry.is_loading      ? State::kLoading
                                           : State::kUnloaded,
          .is_leaving = entry.is_leaving,
          .progress = entry.progress,
          .loads = entry.loads,
          .limits = entry.limits,
          .loaded = entry.loaded};
}

bool Models::is_loading() const {
  const std::lock_guard lock(mutex_);
  return !wanted_.empty() || std::ranges::any_of(entries_, &Entry::is_loading);
}

bool Models::ranks_ended() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(entries_, [](const Entry& entry) {
    return entry.loaded != nullptr && entry.loaded->engine->ranks_ended();
  });
}

void Models::Loop() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (wanted_.empty()) {
      for (Entry& entry : entries_) entry.is_leaving = false;
      WaitForIdle(lock);
      continue;
    }
    const size_t model = wanted_.front();
    Entry& entry = entries_[model];
    if (entry.loaded != nullptr && !entry.is_leaving) {  // it need not leave any more
      wanted_.pop_front();
      const std::shared_ptr<Wait> wait = std::exchange(entry.wait, nullptr);
      entry.users += wait->requests;
      wait->done = true;
      changed_.notify_all();
    } else if (HasRoom(model, lock) || !MakeRoom(lock)) {
      // The mutex was free for a moment, in which the last request may have gone.
      if (!wanted_.empty() && wanted_.front() == model) Load(model, lock);
    }
  }
}

bool Models::HasRoom(size_t model, std::unique_lock<std::mutex>& lock) const {
  const auto is_loaded = [](const Entry& entry) { return entry.loaded != nullptr; };
  if (std::ranges::count_if(entries_, is_loaded) >= options_.most_loaded) return false;
  if (!options_.fits) return true;
  lock.unlock();
  const bool fits = options_.fits(entries_[model].source.facts);
  lock.lock();
  return fits;
}

bool Models::MakeRoom(std::unique_lock<std::mutex>& lock) {
  Entry* oldest = nullptr;
  for (Entry& entry : entries_) {
    if (entry.loaded == nullptr) continue;
    const auto key = [](const Entry& of) {
      return std::tuple(of.users > 0, !of.is_leaving, of.used_ms);
    };
    if (oldest == nullptr || key(entry) < key(*oldest)) oldest = &entry;
  }
  if (oldest == nullptr) return false;
  oldest->is_leaving = true;
  if (oldest->users > 0) {
    changed_.wait(lock);
    return true;
  }
  Unload(*oldest, /*idle=*/false, lock);
  return true;
}

void Models::WaitForIdle(std::unique_lock<std::mutex>& lock) {
  double left_ms = std::numeric_limits<double>::infinity();
  for (Entry& entry : entries_) {
    if (entry.loaded == nullptr || entry.users > 0) continue;
    const double entry_left_ms = entry.used_ms + options_.idle_ms - options_.now_ms();
    if (entry_left_ms <= 0) return Unload(entry, /*idle=*/true, lock);
    left_ms = std::min(left_ms, entry_left_ms);
  }
  if (left_ms == std::numeric_limits<double>::infinity()) return changed_.wait(lock);
  changed_.wait_for(lock, std::chrono::duration<double, std::milli>(left_ms));
}

void Models::Unload(Entry& entry, bool idle, std::unique_lock<std::mutex>& lock) {
  std::shared_ptr<const LoadedModel> leaving = std::move(entry.loaded);
  entry.is_leaving = false;
  lock.unlock();
  if (options_.on_unload) options_.on_unload(entry.source.facts, idle);
  leaving.reset();
  lock.lock();
}

void Models::Load(size_t model, std::unique_lock<std::mutex>& lock) {
  Entry& entry = entries_[model];
  wanted_.pop_front();
  for (Entry& other : entries_) other.is_leaving = false;
  entry.is_loading = true;
  entry.progress = 0;
  changed_.notify_all();
  lock.unlock();
  std::shared_ptr<const LoadedModel> loaded;
  std::exception_ptr error;
  try {
    loaded = entry.source.load([&](int64_t done, int64_t total) {
      const std::lock_guard guard(mutex_);
      entry.progress = PartOf(done, total);
    });
  } catch (...) {
    error = LoadingFailed(entry.source.facts.name);
  }
  lock.lock();
  entry.is_loading = false;
  const std::shared_ptr<Wait> wait = std::exchange(entry.wait, nullptr);
  if (loaded != nullptr) {
    Keep(entry, std::move(loaded));
    entry.users += wait->requests;
  }
  wait->error = std::move(error);
  wait->done = true;
  changed_.notify_all();
}

}  // namespace godwit::server
