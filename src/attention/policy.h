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

#include "kv/kv_cache.h"
#include "ops/attention.h"

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
  static constexpr size_t kMost = 4;
  void Add(const Look& look) { looks_[count_++] = look; }
  std::span<const Look> span() const { return std::span(looks_).first(count_); }

 private:
  std::array<Look, kMost> looks_;
  size_t count_ = 0;
};

class AttentionPolicy {
 public:
  virtual ~AttentionPolicy() = default;

  // As --kv spells it.
  virtual std::string name() const = 0;
  // The length that a text may reach; INT64_MAX: any.
  virtual int64_t limit_tokens() const = 0;
  // Tokens that the next one sees at most, however many there will be.
  virtual int64_t most_kept() const = 0;

  // What a text of `length` tokens has forgotten: no token from there on sees these positions. The
  // cache may drop them.
  virtual ops::KvRange Forgotten(int64_t length) const = 0;

  // Before a text is read, or read on: the tokens before `position` are its context, those from
  // there on ask about it, and go on. Read tokens stay on the side on which they were. A policy
  // that shows both the same does not care.
  virtual void AskFrom(int64_t /*position*/) {}

  // For every run of a step, before layer 0; throws Error and changes nothing if it cannot.
  virtual void Plan(const RowRun& /*run*/) {}
  // What the run's rows see in `layer`, whose keys and values are written. Spans are valid until
  // the next call of Plan.
  virtual Looks Select(const RowRun& run, int64_t layer) = 0;

  // With the same derived data, for a text that goes on from the same tokens.
  virtual std::unique_ptr<AttentionPolicy> Fork() const = 0;
};

}  // namespace godwit
