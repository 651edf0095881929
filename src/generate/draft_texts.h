// DraftTexts: texts as a draft model has read them. They are kept for the next request that begins
// alike, such as the next turn of a chat, or another answer to a prompt. They share pages with the
// caches that go on from them, and are the first to go when memory is needed. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "attention/core/text_cache.h"

namespace godwit {

class DraftTexts {
 public:
  // The number of texts that are kept.
  static constexpr size_t kMost = 8;

  // Keeps a text whose cache has read all of `tokens`. key: texts of other keys do not go on from
  // it. Texts with which it begins are dropped.
  void Keep(const std::string& key, std::vector<int32_t> tokens, std::unique_ptr<TextCache> cache);
  // A fork of the kept text that shares the most first tokens with `tokens`. It has read no others
  // than these. Null: there is none.
  std::unique_ptr<TextCache> Fork(const std::string& key, std::span<const int32_t> tokens);
  // Drops the text that was not used for the longest time. False: there was none.
  bool Drop();

 private:
  struct Text {
    std::string key;
    std::vector<int32_t> tokens;
    std::unique_ptr<TextCache> cache;
  };

  std::mutex mutex_;
  std::vector<Text> texts_;  // the last used one last
};

}  // namespace godwit
