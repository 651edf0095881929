// AttentionPolicy: which keys of its text a query sees, and at which positions.
//
// A policy owns no keys and no values. They lie in the text's KvCache, rotated at their positions
// in the text, and several policies may look at one cache. The data that a policy keeps is derived
// from keys. A policy never learns which model it serves. tests/laws holds every policy to the same
// laws.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "attention/core/derived_index.h"
#include "kv/kv_cache.h"
#include "ops/attention.h"
#include "ops/exec.h"
#include "ops/gpu/near_tiles.h"
#include "tensor/view.h"

namespace godwit {

// The purpose of a step's rows.
enum class Phase {
  kPrompt,  // a prompt is being read
  kQuery,   // the end of a prompt: the question, which is answered from here on
  kDecode,  // decode: the text is being continued
};

// The question about a text, and its answer.
struct Question {
  // Tokens before `begin` are the context; tokens from there on ask about it; tokens from `answer`
  // on are the answer.
  int64_t begin = 0;
  int64_t answer = INT64_MAX;
  // The positions whose keys lie on this host. A policy that chooses keys for the question and the
  // answer chooses among these.
  ops::KvRange choosable = {0, INT64_MAX};
};

// Consecutive rows of one text, and the cache in which their own keys lie, too.
struct RowRun {
  int64_t position;  // of the first row, in the text
  int64_t rows;
  Phase phase;
  const KvCache* cache;
  // Rows of the step between the cached text and this run, in order. The path of a tree:
  // `ancestors` before the branch, then rows from first_row on.
  std::span<const int64_t> ancestors = {};
  int64_t first_row = 0;

  // The row of the step at a position behind the cached text: a row of this run or of its
  // ancestors.
  int64_t RowAt(int64_t at) const {
    const int64_t place = at - cache->length();
    return place < std::ssize(ancestors) ? ancestors[place]
                                         : first_row + place - std::ssize(ancestors);
  }
};

// One rule by which the rows of a run see their cache in one layer: ops::AttentionSource without
// the memory behind it.
struct Look {
  ops::Visible visible;
  std::span<const std::span<const ops::TilePart>> parts = {};
  // The position at which queries are rotated, instead of their own positions in the text. Keys
  // stay at their positions in the text, or with keys_move they move with the query.
  std::optional<int64_t> query_place = {};
  bool keys_move = false;
};

// The looks at a layer. Together they show a row each key once.
class Looks {
 public:
  static constexpr size_t kMost = 6;
  void Add(const Look& look) { looks_[count_++] = look; }
  std::span<const Look> span() const { return std::span(looks_).first(count_); }
  // Counts the bytes of its own data that the policy read to choose the looks.
  void AddRead(int64_t bytes) { read_bytes_ += bytes; }
  int64_t read_bytes() const { return read_bytes_; }
  // The attention state over keys that the row is not shown (AttentionRows::before of
  // ops/attention.h), for a row that selects alone. It lies in the workspace of the row's queries.
  void SetBefore(const float* states) { before_ = states; }
  const float* before() const { return before_; }

 private:
  std::array<Look, kMost> looks_;
  size_t count_ = 0;
  int64_t read_bytes_ = 0;
  const float* before_ = nullptr;
};

// The queries of a run in one layer.
struct RunQueries {
  // Memory from its workspace is valid until the step has attended to the layer.
  const Exec& exec;
  // [rows * heads, head_dim], rotated at their places in the text, in head-major order
  // (ops/attention.h).
  MatrixView<const float> q;
  // Whose queries they are: those of the layer (0), or of the n-th other layer that reads its keys
  // (AttentionGeometry::readers).
  int64_t reader = 0;
  // The keys that the model itself shows a row, for a row that comes alone: a list for its KV head
  // (AttentionGeometry::key_index). Empty: it shows all.
  std::span<const std::span<const ops::TilePart>> chosen = {};
};

// The facts about a policy that no token of a text changes. A policy around another one copies its
// facts and changes those that differ.
struct PolicyFacts {
  std::string name;  // as --kv spells it
  // The way in which a context is read. Policies with the same way compute the same keys and values
  // from it.
  std::string reading;
  // The way in which a context is read as --prefill spells it; empty: as it is asked about.
  std::string prefill = {};
  // The part of the text that is kept and what a token sees of it, in sentences for people.
  std::string explanation;

  int64_t limit_tokens = INT64_MAX;  // the length that a text may reach; INT64_MAX: any
  int64_t max_kept_tokens = 0;  // that the next token sees, at most, for any length of the text
  // Whether the question and the answer see every token of the text.
  bool shows_all = false;
  // The number of tokens in a block that question and answer choose; 1: they choose none.
  int64_t chosen_tokens = 1;
  // The tokens at the beginning of the text, and the last ones, that question and answer always
  // see. Layers with a window of the model's own may show fewer.
  int64_t seen_sinks = 0;
  int64_t seen_window = 0;
  // Whether a block is chosen for all KV heads, else for each.
  bool one_choice = false;
  // Whether the question is shown other keys than the context is.
  bool separates_question = false;
  // The number of last context tokens that are shown other keys than those before them. With
  // another question they would see other keys.
  int64_t question_dependent_tokens = 0;
  // Whether all derived data comes from keys, so that a new policy can go on from the keys alone.
  bool keys_suffice = true;
  // The reason, for messages, why a text cannot lie on several ranks that each show a part of it;
  // empty: it can.
  std::string one_rank_reason = "it was made for a text that one rank holds whole";

  // Whether a text has no longest length, because the policy forgets.
  bool endless() const { return limit_tokens == INT64_MAX; }
};

// The keys to which a GPU attends for rows from position `from` on, while the host attends to the
// others that they see. Looks show such keys whole, and rows have one look without a place.
struct NearOnGpu {
  ops::NearTiles tiles = {};  // none: the host attends to all
  int64_t from = 0;
};

class AttentionPolicy {
 public:
  virtual ~AttentionPolicy() = default;

  const PolicyFacts& facts() const { return facts_; }

  // Prepares a run, before layer 0 of its step. Called for every run, also for one that may follow.
  // Throws Error and changes nothing if it cannot.
  virtual void Plan(const RowRun& /*run*/) {}
  // The looks of the run's rows in `layer`, whose keys and values are written. Spans are valid
  // until the next call of Plan, or as long as the queries' workspace. Also called for rows to
  // which an enclosing policy shows other keys: this policy may learn from their queries.
  virtual Looks Select(const RowRun& run, int64_t layer, const RunQueries& queries) = 0;
  // The position from which rows come to Select one at a time, in a layer whose rows select by
  // their queries.
  virtual int64_t row_by_row_from(int64_t /*layer*/) const { return INT64_MAX; }
  // The position up to which a GPU attends for rows, to the keys of one look without parts or
  // places; 0: for none. Its bits are not the host's.
  virtual int64_t on_gpu_until() const { return 0; }
  virtual NearOnGpu near_on_gpu() const { return {}; }
  // The most keys of each KV head that an answer token at `position` sees in a layer, itself
  // included. Computed before there is a text (kv_cost.h).
  virtual int64_t SeenKeys(int64_t layer, int64_t position) const = 0;
  // The same of a token of the context, once SetQuestion has told where that ends.
  virtual int64_t ContextKeys(int64_t layer, int64_t position) const {
    return SeenKeys(layer, position);
  }
  // The forgotten positions of a text of `length` tokens: no token from `length` on sees them. The
  // cache may drop them.
  virtual ops::KvRange Forgotten(int64_t length) const = 0;
  // Sets what is asked, before a text is read or read on. Tokens that were read stay on their side.
  // A policy that shows every token the same ignores it.
  virtual void SetQuestion(const Question& /*question*/) {}

  // The data that the policy derives; null: none.
  virtual const DerivedIndex* index() const { return nullptr; }
  DerivedIndex* index() { return const_cast<DerivedIndex*>(std::as_const(*this).index()); }

  // A policy with the same derived data, for a text that goes on from the same tokens.
  virtual std::unique_ptr<AttentionPolicy> Fork() const = 0;

  // Changes the facts, before the policy is used: those of a text that lies on several ranks are
  // others.
  void Restate(PolicyFacts facts) { facts_ = std::move(facts); }

 protected:
  // An empty PolicyFacts::reading is a way of the policy's own, and gets its name.
  explicit AttentionPolicy(PolicyFacts facts) : facts_(std::move(facts)) {
    if (facts_.reading.empty()) facts_.reading = facts_.name;
  }
  AttentionPolicy(const AttentionPolicy&) = default;

 private:
  PolicyFacts facts_;
};

}  // namespace godwit
