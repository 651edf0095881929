// TextCache: one text as attention knows it, its cached keys and values and the policy by which it
// looks back at them. A step over several texts is attention/step.h. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attention/geometry.h"
#include "attention/policy.h"
#include "attention/rotary_step.h"
#include "dist/communicator.h"
#include "kv/kv_cache.h"
#include "kv/snapshot_folder.h"

namespace godwit {

struct KvStats {
  std::string policy;  // as --kv spells it
  int64_t seen = 0;    // tokens of the text
  int64_t kept = 0;    // of those, the ones that the next token may see
  // The positions of the others.
  std::vector<ops::KvRange> dropped;
  int64_t most_kept = 0;  // tokens, however many there will be
  int64_t bytes = 0;      // held in memory or a file, shared with other texts or not
  // Of keys and values that the last step looked at, and of what it read to choose them, in all
  // layers; bytes that several of its rows saw together count once.
  int64_t read_bytes = 0;
  // Keys that its rows met, once for every row and KV head, in all layers.
  int64_t met_keys = 0;
  int64_t file_read_bytes = 0;  // that came from a file (KvCache::WillRead), since the text began
};

// What a step read of a text, as KvStats has it.
struct KvReads {
  int64_t bytes = 0;
  int64_t met_keys = 0;

  KvReads& operator+=(const KvReads& other) {
    bytes += other.bytes;
    met_keys += other.met_keys;
    return *this;
  }
};

class TextCache {
 public:
  // What has been forgotten stays for so many tokens more: an answer that does not stay in the text
  // can be taken back, where reading an endless text again would take forever.
  static constexpr int64_t kTokensToGoBack = kernels::kTileTokens;

  // context: the longest that the text will be, on which dynamic rotary frequencies depend.
  // int8_products: as ops::AttentionSource has it. ranks: that share the text; null: nobody.
  TextCache(const AttentionGeometry& geometry, std::unique_ptr<AttentionPolicy> policy,
            std::shared_ptr<KvPool> pool, int64_t context, bool int8_products,
            std::shared_ptr<Communicator> ranks = nullptr);

  // The same text, sharing its pages; what is appended to one, the other does not see.
  std::unique_ptr<TextCache> Fork() const;
  // Likewise, and seen as another policy of the model sees it, such as a draft that looks at a
  // part. Throws Error(kUnsupported) if what that one sees has been dropped.
  std::unique_ptr<TextCache> Fork(std::unique_ptr<AttentionPolicy> policy) const;
  // Of a fork: forgets what it read itself and goes on as `text`, which has dropped nothing. What
  // its policy derived from the tokens that both had stays, so that it takes time in proportion to
  // the others.
  void GoOnAs(const TextCache& text);

  const AttentionGeometry& geometry() const { return geometry_; }
  const AttentionPolicy& policy() const { return *policy_; }
  const KvCache& cache() const { return cache_; }

  // Tokens that went through, the next token's position in the text.
  int64_t length() const { return cache_.length(); }
  int64_t limit_tokens() const { return policy_->limit_tokens(); }
  // A step may bring so many tokens at most.
  int64_t MostNext() const { return policy_->Reads(length()).end - length(); }
  // Whether it brings them all, since other ranks wait for them.
  bool TakesAllNext() const {
    return policy_->ring() != nullptr && length() < policy_->ring()->context;
  }
  // Whether it keeps what they read in that step, too.
  bool KeepsAllNext() const { return TakesAllNext() && policy_->ring()->kept; }

  // As AttentionPolicy has it; 0 in the beginning, and no answer.
  void AskFrom(int64_t position, int64_t answer = INT64_MAX);

  // Of a text that nobody has begun, and that nobody else shares: it goes on from a chain of a
  // folder, of a text that was read in the same way (AttentionPolicy::reading), as far as it can be
  // opened. Returns up to where: less than the chain's end, or 0, where the policy needs to have
  // seen more than keys. Throws Error(kMemory).
  int64_t TakeUp(SnapshotFolder& folder, std::span<const SnapshotFolder::Piece> pieces,
                 int64_t answer);

  // Makes room for a step of `tokens`. Throws Error(kMemory) with everything as it was. A step does
  // so itself: this is for who wants to know before.
  void Reserve(int64_t tokens);

  // Forgets the tokens at positions >= length, as if they had never come. Truncate throws
  // Error(kUnsupported) where CanTruncate says no: what was seen then has been dropped.
  bool CanTruncate(int64_t length) const;
  void Truncate(int64_t length);
  // The most tokens, of the first `length`, to which it can be truncated and asked for an answer
  // from there on (AttentionPolicy::GoesBackTo); 0 if to none.
  int64_t GoesBackTo(int64_t length, int64_t answer) const;

  // Of the last step, whose rows had parents (Segment::parents): the path that ends with `row` is
  // how the text goes on, all else never was. To be called before the next step, or none was kept.
  void Accept(int64_t row);

  KvStats Stats() const;

 private:
  friend class AttentionStep;
  TextCache(const TextCache& other, std::unique_ptr<AttentionPolicy> policy);
  // Whether what has been dropped is forgotten at that length, too.
  bool HoldsWhatIsSeen(const AttentionPolicy& policy, int64_t length) const;

  // A path of a tree: where its own rows begin, and a cache of its own. The first one writes where
  // the text itself would go on, so that a single path costs no fork.
  struct Branch {
    int64_t first_row;
    int64_t position;
    int64_t rows;
    std::vector<int64_t> path;  // AttentionPolicy::Accept
    std::optional<KvCache> cache;
  };

  // For what a step of `tokens` brings, and others in the same one if it keeps that.
  void ReserveNext(int64_t tokens);
  void Append(int64_t tokens);
  // What other ranks read.
  void SkipOthers();

  AttentionGeometry geometry_;
  std::unique_ptr<AttentionPolicy> policy_;
  KvCache cache_;
  std::array<RotaryEncoding, 2> rotaries_;  // AttentionGeometry::RotaryOf
  bool int8_products_;
  std::shared_ptr<Communicator> ranks_;
  int64_t answer_ = INT64_MAX;
  KvReads reads_;

  // Of the step in progress, or the tree that waits for Accept.
  std::array<RotaryStep, 2> positions_;  // of the rows, in the text; by rotaries_
  std::array<RotaryStep, 2> tiles_;      // of the tiles that it writes into, with KvLayout::centred
  std::array<RotaryStep, 2> place_;      // Look::query_place, likewise
  int64_t placed_at_ = -1;
  std::vector<Branch> branches_;
};

}  // namespace godwit
