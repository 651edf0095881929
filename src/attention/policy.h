// AttentionPolicy: what a query may see of its text, and at which positions.
//
// It owns no keys and no values: those lie in the text's KvCache, rotated at their positions in the
// text, and several policies may look at one. What a policy keeps beside is derived from them. It
// never learns which model it serves. tests/laws holds every policy to the same laws.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "attention/ring_layout.h"
#include "kv/kv_cache.h"
#include "kv/saved_index.h"
#include "ops/attention.h"
#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit {

// What the rows of a step are for.
enum class Phase {
  kPrompt,  // the text is being read
  kQuery,   // its end: the question, which is answered from here on
  kDecode,  // it is being continued
};

// Rows of one text that follow each other, and the cache in which their own keys lie, too.
struct RowRun {
  int64_t position;  // of the first, in the text
  int64_t rows;
  Phase phase;
  const KvCache* cache;
  // Rows of the step that continue the text: those before its branch, and from there on.
  std::span<const int64_t> ancestors = {};
  int64_t first_row = 0;

  // The row of the step at a position behind what is cached, this run's or before it.
  int64_t RowAt(int64_t at) const {
    const int64_t place = at - cache->length();
    return place < std::ssize(ancestors) ? ancestors[static_cast<size_t>(place)]
                                         : first_row + place - std::ssize(ancestors);
  }
};

// A way in which the rows of a run look at their cache, for one layer: ops::AttentionSource without
// the memory behind it.
struct Look {
  ops::Visible visible;
  std::span<const std::span<const ops::TilePart>> parts = {};
  // Where the queries stand instead of at their places in the text. The keys stay where they are in
  // the text, and the queries are rotated at this place; or they are moved with the query.
  std::optional<int64_t> query_place = {};
  bool keys_move = false;
};

// The looks at a layer, which together show a row each key once.
class Looks {
 public:
  static constexpr size_t kMost = 6;
  void Add(const Look& look) { looks_[count_++] = look; }
  std::span<const Look> span() const { return std::span(looks_).first(count_); }
  // What the policy read of its own to choose them.
  void AddRead(int64_t bytes) { read_bytes_ += bytes; }
  int64_t read_bytes() const { return read_bytes_; }
  // Of a row that selects alone: what it gets of keys that it is not shown (ops::AttentionRows has
  // it), in its queries' workspace.
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
  // What is taken of its workspace is valid until the step has attended to the layer.
  const Exec& exec;
  // [rows * heads, head_dim], rotated at their places in the text, in head-major order
  // (ops/attention.h).
  MatrixView<const float> q;
};

// What is derived from the keys of a text: memory held, and what of it one of so many tokens reads
// in all layers.
struct IndexSize {
  int64_t held_bytes = 0;
  int64_t read_bytes = 0;
  int64_t read_every_tokens = 1;
};

class AttentionPolicy {
 public:
  virtual ~AttentionPolicy() = default;

  // As --kv spells it.
  virtual std::string name() const = 0;
  // Likewise, how it reads a context: policies that say the same make the same of it.
  virtual std::string reading() const { return name(); }
  // What of the text is kept and what a token sees of it, in sentences for people.
  virtual std::string Explain() const = 0;
  // The length that a text may reach; INT64_MAX: any.
  virtual int64_t limit_tokens() const = 0;
  // Tokens that the next one sees at most, however many there will be.
  virtual int64_t most_kept() const = 0;

  // What a text of `length` tokens has forgotten: no token from there on sees these positions. The
  // cache may drop them.
  virtual ops::KvRange Forgotten(int64_t length) const = 0;

  // Of a token of an answer, before there is one (kv_cost.h): keys of each KV head that it sees in
  // a layer, at most and with its own, and what is derived from keys by then, in pages of `layout`.
  virtual int64_t SeenKeys(int64_t layer, int64_t position) const = 0;
  virtual IndexSize IndexAt(const KvLayout& /*layout*/, int64_t /*position*/) const { return {}; }

  // Before a text is read, or read on: the tokens before `position` are its context, those from
  // there on ask about it, and those from `answer` on go on. Read tokens stay on the side on which
  // they were. A policy that shows all the same does not care.
  virtual void AskFrom(int64_t /*position*/, int64_t /*answer*/) {}

  // Before AskFrom, of a text that nobody has begun: others hold all but these positions, and this
  // one shows a row no key that is not among them. A policy whose looks are ranges of positions
  // does not care: what else they show is cut off.
  virtual void ShowOnly(ops::KvRange /*positions*/) {}

  // Whether it shows the question other things than the context.
  virtual bool tells_question() const { return false; }
  // Of the context, the last tokens before the question, which it shows other things than those
  // before them: with another question they are others.
  virtual int64_t tail_tokens() const { return 0; }
  // In a layer whose rows select by their queries: from this position on they come to Select one at
  // a time.
  virtual int64_t alone_from(int64_t /*layer*/) const { return INT64_MAX; }

  // What of the text is read next where it has `length` tokens: the positions before `begin`, which
  // others read, it skips; and no step goes beyond `end`.
  virtual ops::KvRange Reads(int64_t length) const { return {length, INT64_MAX}; }
  // From this position on a row sees only what lies here: what it gets is that of all hosts merged.
  virtual int64_t merged_from() const { return INT64_MAX; }
  // Where the tokens lie, at the text's beginning, that this host reads together with others, a
  // chunk at once, seeing what they hold, too; null: it reads alone. Select then gives ranges of
  // positions, of all.
  virtual const RingLayout* ring() const { return nullptr; }
  // Tokens at the text's beginning that are read so and kept by all.
  int64_t kept_by_all() const { return ring() != nullptr && ring()->kept ? ring()->context : 0; }

  // For every run of a step, before layer 0, and for a run that may follow; throws Error and
  // changes nothing if it cannot.
  virtual void Plan(const RowRun& /*run*/) {}
  // What the run's rows see in `layer`, whose keys and values are written. Spans are valid until
  // the next call of Plan, or as long as the queries' workspace. Also of rows to which a policy
  // around it shows other things: it may learn from their queries.
  virtual Looks Select(const RowRun& run, int64_t layer, const RunQueries& queries) = 0;

  // The rows of the last step, a tree, that the text goes on with from `length` on, which are on
  // one path (RowRun::RowAt); what is derived from others goes.
  virtual void Accept(int64_t /*length*/, std::span<const int64_t> /*path*/) {}
  // The text has so many tokens now, maybe fewer than were shown: what is derived from the keys of
  // others, and the room for it, goes.
  virtual void Truncate(int64_t /*length*/) {}
  // The most tokens, of the first `length`, with which the text can go on as if no others had come:
  // fewer where what was derived from them is not remembered. answer: as it will be asked there,
  // where its question begins as it does now.
  virtual int64_t GoesBackTo(int64_t length, int64_t /*answer*/) const { return length; }
  // Whether all that it derives comes from keys, so that a text goes on from them alone, in a new
  // policy.
  virtual bool keys_suffice() const { return true; }
  // Of that, what is worth saving beside them: its kind, however much there is, and all of it,
  // valid until anything changes.
  virtual TextIndex index() const { return {}; }
  // Of a new one, whose text was taken up: what there is of that kind, from the same first tokens.
  // Throws Error(kMemory).
  virtual void TakeUp(const KvCache& /*cache*/, const TextIndex& /*index*/) {}
  // Memory held by what is derived from keys.
  virtual int64_t bytes() const { return 0; }

  // With the same derived data, for a text that goes on from the same tokens.
  virtual std::unique_ptr<AttentionPolicy> Fork() const = 0;
};

}  // namespace godwit
