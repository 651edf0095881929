// TextCache: one text as a model knows it. It has cached keys and values, the policy by which
// attention looks back at them, and the states of recurrent layers. A step over several texts is
// attention/core/step.h; a text that was saved comes back by restore_text.h. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attention/core/geometry.h"
#include "attention/core/policy.h"
#include "attention/core/rotary_step.h"
#include "attention/ranks/text_placement.h"
#include "dist/communicator.h"
#include "kv/kv_cache.h"
#include "kv/state_cache.h"

namespace godwit {

struct KvStats {
  std::string policy;  // as --kv spells it
  int64_t seen = 0;    // tokens of the text
  int64_t kept = 0;    // tokens of the text that the next token may see
  // Positions of the tokens that are not kept.
  std::vector<ops::KvRange> dropped;
  int64_t max_kept_tokens = 0;  // the most tokens kept, for any length of the text
  int64_t bytes = 0;            // held in memory or a file, shared with other texts or not
  // Bytes of keys and values that the last step looked at, and bytes that it read to choose them,
  // in all layers. Bytes that several rows saw together count once.
  int64_t read_bytes = 0;
  // Keys that the last step's rows met, once for every row and KV head, in all layers.
  int64_t met_keys = 0;
  // Bytes that came from a file since the text began (KvCache::WillRead)
  int64_t file_read_bytes = 0;
};

// The reads of a step in a text, as KvStats counts them.
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
  // The number of tokens for which forgotten positions stay longer. An answer that does not stay in
  // the text can then be taken back, where reading an endless text again would take forever.
  static constexpr int64_t kMaxRollbackTokens = kTileTokens;

  // context: the longest that the text will be, on which dynamic rotary frequencies depend.
  // int8_products: as ops::AttentionSource has it. placement, ranks: how ranks share the text, and
  // their communicator; null: none do.
  TextCache(const AttentionGeometry& geometry, std::unique_ptr<AttentionPolicy> policy,
            std::shared_ptr<KvPool> pool, int64_t context, bool int8_products,
            TextPlacement placement = {}, std::shared_ptr<Communicator> ranks = nullptr);

  // A fork: the same text, which shares its pages. Tokens appended to one are not seen by the
  // other.
  std::unique_ptr<TextCache> Fork() const;
  // A fork that sees the text by another policy of the model, such as a draft that looks at a part.
  // Throws Error(kUnsupported) if positions that this policy sees have been dropped.
  std::unique_ptr<TextCache> Fork(std::unique_ptr<AttentionPolicy> policy) const;
  // A fork of the context that ranks share, filled to whole tiles, to be saved. Null: this rank has
  // not read all of its part, or no context is shared.
  std::unique_ptr<TextCache> ForkOfContext() const;
  // Makes a fork forget the tokens that it read itself and go on as `text`, which has dropped
  // nothing. Data that its policy derived from common tokens stays, so that the time is
  // proportional to the others.
  void ContinueAs(const TextCache& text);

  const AttentionGeometry& geometry() const { return geometry_; }
  const AttentionPolicy& policy() const { return *policy_; }
  const TextPlacement& placement() const { return placement_; }
  const KvCache& cache() const { return cache_; }
  const StateCache& states() const { return states_; }
  // The policy's derived data that is worth saving beside the keys; valid until anything changes.
  TextIndex index() const;
  // The bytes of memory that derived data holds.
  int64_t index_bytes() const;

  // The tokens that went through, which is the next token's position in the text.
  int64_t length() const { return cache_.length(); }
  int64_t limit_tokens() const { return policy_->facts().limit_tokens; }
  // The most tokens that a step may bring.
  int64_t MaxNextTokens() const { return placement_.Reads(length()).end - length(); }
  // Whether a step must bring MaxNextTokens() tokens, since other ranks wait for them.
  bool AllRanksReadNext() const { return placement_.AllReadNext(length()); }
  // Whether the cache also keeps the tokens that other ranks read in that step.
  bool AllRanksKeepNext() const { return placement_.AllKeepNext(length()); }
  // The tokens of the context that this rank has yet to read, where ranks share it.
  int64_t ContextLeft() const { return placement_.ContextLeft(length()); }

  // Sets where the question and the answer begin, as Question has them; at first 0, and no answer.
  void SetQuestion(int64_t position, int64_t answer = INT64_MAX);

  // Reserves memory for a step of `tokens`, which a step otherwise does itself. Throws
  // Error(kMemory) with everything as it was.
  void Reserve(int64_t tokens);

  // Forgets the tokens at positions >= length, as if they had never come. Truncate throws
  // Error(kUnsupported) where CanTruncate is false: positions that were seen at that length have
  // been dropped, or its states are no longer held.
  bool CanTruncate(int64_t length) const;
  void Truncate(int64_t length);
  // The most tokens, up to `length`, to which the text can be truncated and asked for an answer
  // from there on (DerivedIndex::RestartPoint, StateCache::RestartPoint). 0: to none.
  int64_t RestartPoint(int64_t length, int64_t answer) const;

  // Gives back states to which the text could return, when their memory is needed elsewhere. False:
  // there were none.
  bool ReleaseKeptStates() noexcept { return states_.ReleaseKept(); }

  // Keeps the path of the last step's tree (Segment::parents) that ends with `row`, and drops all
  // other rows. To be called before the next step; without it no row is kept.
  void Accept(int64_t row);

  // The model's output for the last token, where the model gave it (AttentionStep::KeepOutputs) and
  // the text has not been shortened or saved since. Else empty.
  std::span<const float> last_output() const { return output_; }

  KvStats Stats() const;

 private:
  friend class AttentionStep;
  friend class PredictionStep;
  friend class TextRestorer;  // restore_text.cc
  friend class TextReuser;    // reuse_text.cc
  TextCache(const TextCache& other, std::unique_ptr<AttentionPolicy> policy);
  // The most tokens, up to `length`, from which the policy and other ranks let the text go on.
  int64_t AllowedRestart(int64_t length, int64_t answer) const;
  void TruncateIndex(int64_t length);
  // Whether the dropped positions are also forgotten by `policy` at that length.
  bool HoldsSeenKeys(const AttentionPolicy& policy, int64_t length) const;

  // A path of a tree: where its own rows begin, and a cache of its own. The first path writes where
  // the text itself would go on, so that a single path costs no fork.
  struct Branch {
    int64_t first_row;
    int64_t position;
    int64_t rows;
    std::vector<int64_t> path;  // DerivedIndex::Accept
    std::optional<KvCache> cache;
  };

  // Reserves memory for a step of `tokens`, and for tokens of other ranks in the same step if the
  // cache keeps them.
  void ReserveNext(int64_t tokens);
  // Gives back what is reserved for a step that did not happen.
  void ReleaseReserved() noexcept;
  void Append(int64_t tokens);
  // Makes the output of a row of the step the last one; none, if the step has none.
  void KeepOutput(int64_t row);
  // Skips the positions that other ranks read.
  void SkipTokensOfOtherRanks();

  AttentionGeometry geometry_;
  std::unique_ptr<AttentionPolicy> policy_;
  KvCache cache_;
  StateCache states_;
  std::vector<RotaryEncoding> rotaries_;  // AttentionGeometry::rotaries
  bool int8_products_;
  TextPlacement placement_;
  std::shared_ptr<Communicator> ranks_;
  int64_t answer_ = INT64_MAX;
  KvReads reads_;
  std::vector<float> output_;  // last_output()

  // Data of the step in progress, or of the tree that waits for Accept.
  // Each is indexed as rotaries_.
  std::vector<RotaryStep> positions_;  // of the rows, in the text
  std::vector<RotaryStep> tiles_;      // of the tiles that are written, with KvLayout::centred
  std::vector<RotaryStep> place_;      // at Look::query_place
  int64_t placed_at_ = -1;
  std::vector<Branch> branches_;
  // Outputs [rows, output_size_] of a tree's rows, or that of a chain's last one.
  std::vector<float> row_outputs_;
  int64_t output_size_ = 0;
};

}  // namespace godwit
