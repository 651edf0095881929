#include "kv/snapshot_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <system_error>
#include <utility>

#include "base/checksum.h"
#include "base/file.h"
#include "base/machine_memory.h"
#include "base/mapped_file.h"
#include "base/new_file.h"
#include "base/own_folder.h"
#include "base/quote.h"
#include "kv/kv_cache.h"
#include "kv/state_cache.h"

namespace godwit {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSuffix = ".kv";
constexpr const char* kPinSuffix = ".pin";
constexpr const char* kIndexSuffix = ".index";  // of NAME-TAG

// The tag of an index's kind in file names.
std::string TagOf(const std::string& kind) {
  constexpr size_t kDigits = 8;
  return ContentName({std::as_bytes(std::span(kind))}).substr(0, kDigits);
}

bool IsPlainWord(std::string_view word) {
  constexpr size_t kMost = 64;
  return !word.empty() && word.size() <= kMost && word.front() != '.' &&
         std::ranges::all_of(word, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

bool HasSuffix(const fs::path& file, std::string_view suffix) {
  return file.filename().native().size() > suffix.size() && file.native().ends_with(suffix);
}

}  // namespace

void CheckPinName(const std::string& pin) {
  if (IsPlainWord(pin)) return;
  Throw(ErrorKind::kInput,
        "{}: expected a name of up to 64 letters, digits, dots, dashes and underscores",
        Quote(pin));
}

SnapshotFolder::SnapshotFolder(const fs::path& path, int64_t bytes)
    : path_(fs::absolute(path / "").parent_path()), bytes_(bytes) {
  MakeOwnFolder(path_);
  RemoveAbandoned(path_);
  if (bytes_ > 0) return;
  const std::lock_guard lock(mutex_);
  Refresh();
  std::error_code error;
  const fs::space_info space = fs::space(path_, error);
  bytes_ = error ? INT64_MAX : static_cast<int64_t>(space.available / 2) + tree_.bytes() / 2;
}

fs::path SnapshotFolder::FileOf(const std::string& name) const { return path_ / (name + kSuffix); }

fs::path SnapshotFolder::IndexOf(const std::string& name, const std::string& tag) const {
  return path_ / fmt::format("{}-{}{}", name, tag, kIndexSuffix);
}

void SnapshotFolder::Refresh() {
  std::set<std::string> seen;
  std::map<std::string, std::map<std::string, int64_t>> indexes;
  std::error_code error;
  for (fs::directory_iterator file(path_, error), end; !error && file != end;
       file.increment(error)) {
    const std::string name = file->path().stem().native();
    if (HasSuffix(file->path(), kSuffix)) {
      seen.insert(name);
      Look(*file);
    } else if (HasSuffix(file->path(), kIndexSuffix) && IsOwnFile(file->path())) {
      std::error_code gone;
      const auto bytes = static_cast<int64_t>(file->file_size(gone));
      const size_t dash = std::min(name.find('-'), name.size() - 1);
      if (!gone) indexes[name.substr(0, dash)][name.substr(dash + 1)] = bytes;
    }
  }
  if (error) return;  // entries that are gone show when they are opened
  std::erase_if(tree_.entries, [&](const auto& entry) { return !seen.contains(entry.first); });
  for (auto& [name, entry] : tree_.entries) entry.indexes = std::move(indexes[name]);
  tree_.Link();
}

void SnapshotFolder::Look(const fs::directory_entry& file) {
  const std::string name = file.path().stem().native();
  std::error_code error;
  const auto used = fs::last_write_time(file.path(), error);
  if (error) return;
  if (const auto known = tree_.entries.find(name); known != tree_.entries.end()) {
    known->second.used = used;
    return;
  }
  if (!IsOwnFile(file.path())) return;
  const auto size = static_cast<int64_t>(fs::file_size(file.path(), error));
  const std::string what = fmt::format("{} {} {}", name, size, used.time_since_epoch().count());
  if (error || refused_.contains(what)) return;
  try {
    const MappedFile mapped(file.path());
    SnapshotHeader header =
        ParseSnapshotHeader(mapped.Span(), QuoteUnlessPlain(file.path().native()));
    if (header.info.Name() != name) {
      Throw(ErrorKind::kFormat, "{}: holds something else than its name says",
            QuoteUnlessPlain(file.path().native()));
    }
    tree_.entries[name] = {.name = name,
                           .info = std::make_shared<const SnapshotInfo>(std::move(header.info)),
                           .bytes = size,
                           .used = used,
                           .pins = {}};
  } catch (const Error& why) {
    refused_.insert(what);
    if (IsListed(file.path())) problems_.push_back({file.path(), why.what()});
  }
}

std::vector<SnapshotFolder::Piece> SnapshotFolder::Longest(const SnapshotFacts& facts,
                                                           std::span<const int32_t> tokens) {
  const std::lock_guard lock(mutex_);
  Refresh();
  return tree_.Find(facts, tokens);
}

SnapshotFolder::OtherFactsMatch SnapshotFolder::LongestByOtherFacts(
    const SnapshotFacts& facts, std::span<const int32_t> tokens) {
  const std::lock_guard lock(mutex_);
  return tree_.FindByOtherFacts(facts, tokens);
}

// Uses are ordered by the file system's clock, not by the process's clock.
void SnapshotFolder::Use(Entry& entry) {
  if (utimensat(AT_FDCWD, FileOf(entry.name).c_str(), nullptr, 0) != 0) return;
  std::error_code error;
  const auto used = fs::last_write_time(FileOf(entry.name), error);
  if (!error) entry.used = used;
}

std::shared_ptr<const Snapshot> SnapshotFolder::Open(const std::string& name) {
  const std::lock_guard lock(mutex_);
  try {
    auto snapshot = std::make_shared<const Snapshot>(FileOf(name));
    const auto entry = tree_.entries.find(name);
    if (entry == tree_.entries.end() || snapshot->info().Name() != name) return nullptr;
    Use(entry->second);
    return snapshot;
  } catch (const Error& why) {
    if (IsListed(FileOf(name))) problems_.push_back({FileOf(name), why.what()});
    tree_.entries.erase(name);
    tree_.Link();
    return nullptr;
  }
}

namespace {

// The last position up to `end` whose state is held; 0: none.
int64_t LastState(const StateCache& states, int64_t end) {
  int64_t last = 0;
  for (const int64_t position : states.Positions()) {
    if (position <= end) last = position;
  }
  return last;
}

// The positions of states that a snapshot takes: its end, and earlier ones within a share of the
// bytes of its keys. A text that parts from this one goes on from one of them.
std::vector<int64_t> StatesWorthSaving(const SnapshotInfo& info, const StateCache& states,
                                       int64_t key_bytes) {
  constexpr int64_t kShare = 4;
  std::vector<int64_t> positions = states.Positions();
  std::erase_if(positions, [&](int64_t at) { return at <= info.begin || at > info.end(); });
  const int64_t most = std::max<int64_t>(1, key_bytes / kShare / info.state_bytes());
  if (std::ssize(positions) > most) positions.erase(positions.begin(), positions.end() - most);
  return positions;
}

}  // namespace

int64_t SnapshotFolder::Save(const SnapshotFacts& facts, const std::string& label,
                             std::span<const int32_t> tokens, const KvCache& cache,
                             const StateCache* states) {
  int64_t end = WholeTiles(std::min(std::ssize(tokens), cache.length()));
  if (states != nullptr && states->any()) end = LastState(*states, end);
  const auto text = tokens.first(end);
  SnapshotInfo info{
      .label = label, .facts = facts, .parent = {}, .tokens = {}, .layout = cache.layout()};
  info.layout.page_alignment = 1;
  info.layout.states.row_floats = 0;
  const ops::KvRange dropped = cache.dropped();
  const bool forgets = dropped.end > dropped.begin;
  if (end == 0 || (forgets && dropped.end >= end)) return 0;
  {
    const std::lock_guard lock(mutex_);
    Refresh();
    const auto pieces = tree_.Find(facts, text);
    for (const Piece& piece : pieces) Use(tree_.entries.at(piece.name));
    const int64_t known = pieces.empty() ? 0 : pieces.back().end;
    if (known == end) return 0;
    if (forgets) {
      info.dropped = dropped;
    } else if (known > 0) {
      info.parent = pieces.back().name;
      info.begin = known;
    }
  }
  info.tokens.assign(text.begin() + info.begin, text.end());
  info.skipped = cache.SkippedFrom(info.begin);
  int64_t bytes = info.held_tiles() * info.layout.pages() * info.page_bytes();
  if (states != nullptr && states->any()) {
    info.states = StatesWorthSaving(info, *states, bytes);
    bytes += std::ssize(info.states) * info.state_bytes();
  }
  if (bytes > bytes_) {
    Throw(ErrorKind::kMemory, "{} tokens take {}, and the folder {} may hold {}", end - info.begin,
          FormatBytes(bytes), QuoteUnlessPlain(path_.native()), FormatBytes(bytes_));
  }
  const std::string name = info.Name();
  NewFile file(FileOf(name));
  WriteSnapshot(file, info, cache, states);
  file.Sync();

  const std::lock_guard lock(mutex_);
  const FolderLock folder(path_);
  Refresh();
  // Another process has saved the same snapshot meanwhile. A replaced file could be missed by
  // processes that are listing the folder.
  if (tree_.entries.contains(name)) return 0;
  // Another process may have removed the parent. The next call sees that.
  if (!info.parent.empty() && !tree_.entries.contains(info.parent)) return 0;
  Trim(file.size(), info.parent);
  file.Commit();
  const int64_t saved = end - info.begin;
  auto shared = std::make_shared<const SnapshotInfo>(std::move(info));
  Entry& entry =
      tree_.entries[name] = {.name = name, .info = shared, .bytes = file.size(), .used = {}};
  Use(entry);
  if (forgets) RemoveForgotten(*shared);
  tree_.Link();
  return saved;
}

void SnapshotFolder::SaveIndex(const SnapshotFacts& facts, std::span<const int32_t> tokens,
                               const TextIndex& index) {
  constexpr int64_t kMinMore = 4096, kMinShare = 8;
  if (index.tokens == 0) return;
  const std::string tag = TagOf(index.kind);
  std::string name;
  {
    const std::lock_guard lock(mutex_);
    const auto pieces = tree_.Find(facts, tokens);
    if (pieces.empty()) return;
    name = pieces.back().name;
    const int64_t more =
        std::min(index.tokens, pieces.back().end) - tree_.FindIndex(pieces, tag).tokens;
    if (more < std::min(index.tokens, std::max(kMinMore, index.tokens / kMinShare))) return;
  }
  NewFile file(IndexOf(name, tag));
  WriteIndex(file, index);
  file.Sync();

  const std::lock_guard lock(mutex_);
  const FolderLock folder(path_);
  Refresh();
  const auto entry = tree_.entries.find(name);
  if (entry == tree_.entries.end() || entry->second.indexes.contains(tag)) return;
  if (tree_.bytes() + file.size() > bytes_) return;
  file.Commit();
  entry->second.indexes[tag] = file.size();
  // The new index contains the indexes of the snapshots from which its text goes on.
  for (const Entry* before = tree_.ParentOf(entry->second); before != nullptr;
       before = tree_.ParentOf(*before)) {
    RemoveIndex(tree_.entries.at(before->name), tag);
  }
}

std::unique_ptr<const SavedIndex> SnapshotFolder::OpenIndex(std::span<const Piece> pieces,
                                                            const std::string& kind) {
  if (kind.empty()) return nullptr;
  const std::string tag = TagOf(kind);
  SnapshotTree::FoundIndex found;
  {
    const std::lock_guard lock(mutex_);
    found = tree_.FindIndex(pieces, tag);
  }
  if (found.tokens == 0) return nullptr;
  const fs::path path = IndexOf(found.name, tag);
  try {
    auto saved = std::make_unique<SavedIndex>(path);
    if (saved->index().kind != kind) return nullptr;
    saved->Limit(found.tokens);
    return saved;
  } catch (const Error& why) {
    const std::lock_guard lock(mutex_);
    if (IsListed(path)) problems_.push_back({path, why.what()});
    const auto entry = tree_.entries.find(found.name);
    if (why.kind() == ErrorKind::kFormat && entry != tree_.entries.end())
      RemoveIndex(entry->second, tag);
    return nullptr;
  }
}

void SnapshotFolder::RemoveIndex(Entry& entry, const std::string& tag) {
  if (entry.indexes.erase(tag) > 0) unlink(IndexOf(entry.name, tag).c_str());
}

// Each snapshot of a text that forgets holds all that can be known of the text. Only a text that
// takes an answer back goes on from an earlier snapshot.
void SnapshotFolder::RemoveForgotten(const SnapshotInfo& info) {
  FindPins();
  std::vector<std::string> names;
  for (const auto& [name, entry] : tree_.entries) {
    const SnapshotInfo& other = *entry.info;
    if (Forgets(other) && other.end() < info.end() && other.facts == info.facts &&
        entry.pins.empty() &&
        std::ranges::equal(other.tokens, std::span(info.tokens).first(other.tokens.size()))) {
      names.push_back(name);
    }
  }
  for (const std::string& name : names) RemoveFile(name);
}

void SnapshotFolder::RemoveFile(const std::string& name) {
  if (const auto entry = tree_.entries.find(name); entry != tree_.entries.end()) {
    while (!entry->second.indexes.empty()) {
      RemoveIndex(entry->second, std::string(entry->second.indexes.begin()->first));
    }
    tree_.entries.erase(entry);
  }
  unlink(FileOf(name).c_str());
}

// Removes snapshots from which nothing goes on, those of least worth first.
void SnapshotFolder::Trim(int64_t bytes, const std::string& keep) {
  FindPins();
  int64_t all = tree_.bytes() + bytes;
  while (all > bytes_) {
    tree_.Link();
    const Entry* const least = tree_.EvictionCandidate(fs::file_time_type::clock::now(), keep);
    if (least == nullptr) {
      Throw(ErrorKind::kMemory,
            "the folder {} may hold {}, and what is pinned takes too much of it",
            QuoteUnlessPlain(path_.native()), FormatBytes(bytes_));
    }
    all -= least->all_bytes();
    RemoveFile(std::string(least->name));
  }
}

void SnapshotFolder::FindPins() {
  for (auto& [name, entry] : tree_.entries) entry.pins.clear();
  std::error_code error;
  for (fs::directory_iterator file(path_, error), end; !error && file != end;
       file.increment(error)) {
    if (!HasSuffix(file->path(), kPinSuffix) || !IsOwnFile(file->path())) continue;
    std::string name;
    std::ifstream(file->path()) >> name;
    const auto entry = tree_.entries.find(name);
    if (entry != tree_.entries.end()) entry->second.pins.push_back(file->path().stem().native());
  }
}

void SnapshotFolder::Pin(const std::string& pin, const std::string& name) {
  CheckPinName(pin);
  const std::lock_guard lock(mutex_);
  const FolderLock folder(path_);
  NewFile file(path_ / (pin + kPinSuffix));
  const std::string line = name + "\n";
  file.Write(std::as_bytes(std::span(line)));
  file.Commit();
}

std::optional<std::vector<int32_t>> SnapshotFolder::TokensOf(const SnapshotFacts& facts,
                                                             const std::string& pin_or_name) {
  const std::lock_guard lock(mutex_);
  Refresh();
  FindPins();
  const auto found = std::ranges::find_if(tree_.entries, [&](const auto& named) {
    const Entry& entry = named.second;
    return entry.reachable && entry.info->facts == facts &&
           (entry.name == pin_or_name || std::ranges::count(entry.pins, pin_or_name) > 0);
  });
  if (found == tree_.entries.end()) return std::nullopt;
  const Entry* entry = &found->second;
  std::vector<int32_t> tokens(entry->info->end());
  for (int64_t end = std::ssize(tokens); entry != nullptr; entry = tree_.ParentOf(*entry)) {
    const SnapshotInfo& info = *entry->info;
    std::copy_n(info.tokens.begin(), end - info.begin, tokens.begin() + info.begin);
    end = info.begin;
  }
  return tokens;
}

bool SnapshotFolder::Unpin(const std::string& pin) {
  if (!IsPlainWord(pin)) return false;
  const std::lock_guard lock(mutex_);
  return unlink((path_ / (pin + kPinSuffix)).c_str()) == 0;
}

std::vector<SnapshotFolder::Entry> SnapshotFolder::Entries() {
  const std::lock_guard lock(mutex_);
  Refresh();
  FindPins();
  return tree_.InOrder();
}

int64_t SnapshotFolder::Remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const FolderLock folder(path_);
  Refresh();
  int64_t removed = 0;
  std::vector<std::string> open = {name};
  while (!open.empty()) {
    const std::string one = open.back();
    open.pop_back();
    if (!tree_.entries.contains(one)) continue;
    const auto children = tree_.ChildrenOf(one);
    open.insert(open.end(), children.begin(), children.end());
    RemoveFile(one);
    ++removed;
  }
  tree_.Link();
  return removed;
}

void SnapshotFolder::RemoveDamaged(const DamagedSnapshot& damage) {
  const fs::path file = damage.path();
  const std::lock_guard lock(mutex_);
  if (!tree_.entries.contains(file.stem().native())) return;  // its removal was reported
  RemoveFile(file.stem().native());
  problems_.push_back({file, damage.what()});
  tree_.Link();
}

std::vector<SnapshotFolder::Problem> SnapshotFolder::TakeProblems() {
  const std::lock_guard lock(mutex_);
  return std::exchange(problems_, {});
}

std::vector<SnapshotFolder::Problem> SnapshotFolder::Verify() {
  std::vector<Problem> problems;
  {
    const std::lock_guard lock(mutex_);
    refused_.clear();
    tree_.entries.clear();
    Refresh();
    problems = std::exchange(problems_, {});
  }
  const auto verify = [&](const fs::path& file, const auto& action) {
    try {
      action(file);
    } catch (const Error& why) {
      problems.push_back({file, why.what()});
    }
  };
  for (const Entry& entry : Entries()) {
    verify(FileOf(entry.name), [](const fs::path& file) { Snapshot(file).VerifyAll(); });
    for (const auto& [tag, bytes] : entry.indexes) {
      verify(IndexOf(entry.name, tag), [](const fs::path& file) { SavedIndex{file}; });
    }
    if (entry.reachable) continue;
    problems.push_back(
        {FileOf(entry.name), fmt::format("{}: what it goes on from is gone",
                                         QuoteUnlessPlain(FileOf(entry.name).native()))});
  }
  return problems;
}

}  // namespace godwit
