// SavedTexts: texts that were read, saved on a disk. A new request goes on from them, in this
// process and in later ones.
//
// A thread of its own saves, from pages that the caches share with it, so that no computing thread
// waits for a disk. Any failure with saving or with saved texts is told once, and texts are then
// read as if none were saved. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "attention/core/text_cache.h"
#include "engine/text_plan.h"
#include "godwit/engine.h"
#include "kv/snapshot_folder.h"

namespace godwit {

class SavedTexts {
 public:
  using Notice = std::function<void(const std::string& message)>;

  // notice: may be empty; called from any thread, by one at a time. Throws what SnapshotFolder
  // throws.
  SavedTexts(const std::filesystem::path& folder, int64_t bytes, int64_t save_tokens,
             Notice notice);
  // Finishes saving.
  ~SavedTexts();
  SavedTexts(const SavedTexts&) = delete;
  SavedTexts& operator=(const SavedTexts&) = delete;

  // The limits after which a text is saved again: so many more tokens, or so much time.
  int64_t save_tokens() const { return save_tokens_; }
  static constexpr double kSaveMs = 20'000;

  // Makes a cache that holds the most of the first tokens of a text, if more than `known`. Null:
  // there is none. question_begin, answer: as TextCache::SetQuestion has them. Where ranks go
  // through texts together, all of it is verified now. Throws Error(kMemory).
  std::unique_ptr<TextCache> Restore(const TextPlan& plan, std::span<const int32_t> tokens,
                                     int64_t known, int64_t question_begin, int64_t answer);

  // The number of tokens that Restore would find, if nothing is damaged.
  int64_t Look(const TextPlan& plan, std::span<const int32_t> tokens, int64_t question_begin);

  // Makes a cache that holds all tokens, whole tiles. Null: the saved text is damaged.
  std::unique_ptr<TextCache> RestoreAll(const TextPlan& plan, std::span<const int32_t> tokens,
                                        int64_t question_begin);

  // Queues the part of a text that `cache` has and that is not saved yet. keep_as: as
  // GenerateOptions has it, or empty. A text that still waits gives way to one that goes on from it
  // and has all that it has. Where ranks share the context, each saves its part of that alone, once
  // it has read it.
  void Save(std::shared_ptr<const TextPlan> plan, std::span<const int32_t> tokens,
            const TextCache& cache, int64_t question_begin, const std::string& keep_as);
  // Waits until all queued texts are on the disk, or could not be saved. False: none was waiting.
  bool Wait();

  // Removes a snapshot that was found to be damaged.
  void Remove(const DamagedSnapshot& damage);

  SnapshotFolder& folder() { return folder_; }

 private:
  struct Text {
    std::shared_ptr<const TextPlan> plan;
    SnapshotFacts facts;
    std::vector<int32_t> tokens;
    std::unique_ptr<const TextCache> cache;
    std::string keep_as;
  };

  static bool IsEvictedBefore(const Text& text, const Text& other);
  // Makes a cache of at most these first tokens of a text, more than `known`.
  std::unique_ptr<TextCache> RestoreFirst(const TextPlan& plan, std::span<const int32_t> tokens,
                                          int64_t known, int64_t question_begin, int64_t answer);
  void Work(std::stop_token stop);
  void SaveOne(const Text& text);
  // Tells a cause once, until it is over.
  void Say(const std::string& cause, const std::string& message);
  void SayProblems();
  void ExplainRereading(const SnapshotFacts& mine, std::span<const int32_t> tokens, int64_t found);
  // Whether all of the cache is what was saved. Otherwise removes the damaged snapshot.
  bool Verify(const TextCache& cache);

  SnapshotFolder folder_;
  int64_t save_tokens_;
  Notice notice_;
  std::mutex saying_;
  std::set<std::string> said_;

  std::mutex mutex_;  // guards the members below
  std::condition_variable_any changed_;
  std::deque<Text> waiting_;
  bool busy_ = false;
  std::jthread writer_;  // last: it uses the others
};

}  // namespace godwit
