// DerivedIndex: the data that a policy derives from the keys and queries of its text, by which it
// chooses the keys that a row sees.
#pragma once

#include <cstdint>
#include <span>

#include "kv/kv_cache.h"
#include "kv/saved_index.h"
#include "ops/kv_layout.h"

namespace godwit {

// The size of an index in all layers: bytes held, and bytes that one token in read_every_tokens
// reads.
struct IndexSize {
  int64_t held_bytes = 0;
  int64_t read_bytes = 0;
  int64_t read_every_tokens = 1;
};

class DerivedIndex {
 public:
  virtual ~DerivedIndex() = default;

  // Keeps one path of the last step's tree of draft tokens, with which the text goes on from
  // `length`: step rows as RowRun::RowAt has them. Data derived from other rows is dropped.
  virtual void Accept(int64_t length, std::span<const int64_t> path) = 0;
  // Shortens the text to `length` tokens, maybe fewer than were shown. Data derived from the other
  // keys is dropped, and its memory given back.
  virtual void Truncate(int64_t length) = 0;
  // Takes the keys from `length` on from another text of `end` tokens, which differs from this one
  // in draft tokens only. Data derived from keys that are gone is dropped. The choices of tokens
  // before `end` may stay.
  virtual void ContinueAs(int64_t length, int64_t /*end*/) { Truncate(length); }
  // The most tokens, up to `length`, from which the text can go on as if no others had come. It is
  // less than `length` where data derived from those tokens is no longer remembered. answer: where
  // the answer will begin then; the question begins where it does now.
  virtual int64_t RestartPoint(int64_t length, int64_t /*answer*/) const { return length; }

  // The data that is worth saving beside the keys, with its kind and its number of tokens. Valid
  // until anything changes.
  virtual TextIndex Save() const { return {}; }
  // Gives a new text the saved data of a text that was taken up, from the same first tokens. Data
  // of another kind than that of Save() is ignored. Throws Error(kMemory).
  virtual void Restore(const KvCache& /*cache*/, const TextIndex& /*saved*/) {}

  // The bytes of memory that it holds.
  virtual int64_t bytes() const { return 0; }
  // The index of keys up to `position` in pages of `layout`, computed before there is a text.
  virtual IndexSize SizeAt(const KvLayout& /*layout*/, int64_t /*position*/) const { return {}; }
};

}  // namespace godwit
