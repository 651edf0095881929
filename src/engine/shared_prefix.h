// What a new request can go on from: the texts of others that begin like its own, as far as both
// are read in one way.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"

namespace godwit {

// What was read of a text.
struct ReadText {
  std::shared_ptr<const TextPlan> plan;
  std::vector<int32_t> tokens;
  std::unique_ptr<TextCache> cache;
  int64_t ask_from;          // Request::ask_from
  std::string keep_as = {};  // GenerateOptions::keep_as
};

// The texts of requests that ended, for as long as nobody needs their memory, or they are to be
// kept. One that another begins with gives way to it.
class ParkedTexts {
 public:
  void Park(ReadText text);
  // Somebody goes on from this one.
  void Use(const TextCache* cache);
  // Drops the one with which the least time is lost for the `bytes` that are needed. False: there
  // was none.
  bool Drop(int64_t bytes);
  void DropAll() { texts_.clear(); }
  // Nothing is kept by that name any more.
  void LetGo(std::string_view name);
  std::span<const ReadText> texts() const { return texts_; }

 private:
  std::vector<ReadText> texts_;  // the one that was used last comes last
};

struct SharedPrefix {
  const TextCache* from = nullptr;  // null: nobody's text begins alike
  int64_t tokens = 0;  // that the two have in common, at most all but the last of the request's
  bool ready = false;  // they have been read; else they are being read now

  // A cache of one's own that holds them.
  std::unique_ptr<TextCache> Take() const;
};

// The longest beginning that `request` shares with any of the others, a page at least, and more
// than it has already.
SharedPrefix FindSharedPrefix(const Request& request,
                              std::span<const std::shared_ptr<Request>> running,
                              std::span<const ReadText> parked);

}  // namespace godwit
