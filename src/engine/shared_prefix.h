// Shared prefixes: the texts of other requests from which a new one can go on. Their beginnings are
// equal, as far as both are read in one way.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"

namespace godwit {

// A text that was read, and its cache.
struct ReadText {
  int64_t ticket = -1;  // of the request that read it; -1: a session left it
  std::shared_ptr<const TextPlan> plan;
  std::vector<int32_t> tokens;
  std::unique_ptr<TextCache> cache;
  int64_t question_begin;    // Request::question_begin
  std::string keep_as = {};  // GenerateOptions::keep_as
};

// The texts of requests that ended, 1,024 at most. They stay until their memory is needed, or as
// long as they are to be kept. A text gives way to another that begins with it.
class ParkedTexts {
 public:
  void Park(ReadText text);
  // Marks a text as used: a request goes on from it.
  void Use(const TextCache* cache);
  // Drops the text whose loss costs the least time for the `bytes` that are needed. False: there
  // was none.
  bool Drop(int64_t bytes);
  void DropAll() { texts_.clear(); }
  // Stops keeping a text under that name: it may go when its memory is needed.
  void StopKeeping(std::string_view name);
  std::span<const ReadText> texts() const { return texts_; }

 private:
  std::vector<ReadText> texts_;  // the text used last comes last
};

struct SharedPrefix {
  const TextCache* from = nullptr;  // null: no text begins alike
  int64_t ticket = -1;              // of that text
  int64_t tokens = 0;               // common tokens, at most all but the last of the request's
  bool ready = false;               // the tokens have been read; else they are being read now

  // Makes a cache of its own that holds the common tokens.
  std::unique_ptr<TextCache> Take() const;
};

// The longest beginning that `request` shares with any other text: a page at least, and more than
// it has already.
SharedPrefix FindSharedPrefix(const Request& request,
                              std::span<const std::shared_ptr<Request>> running,
                              std::span<const ReadText> parked);

}  // namespace godwit
