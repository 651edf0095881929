// FakeTokenizer: a token is a byte, so that tests of other rooms need no files. All of it in this
// header: the library has nothing of tests.
//
// Ids 0..255 are the bytes, kBos and kEos follow. Encode adds kBos when asked to add special
// tokens; it never finds special tokens in text. Unlike a real tokenizer it encodes malformed UTF-8
// as it is; decoding repairs it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "text/tokenizer.h"

namespace godwit {

class FakeTokenizer : public Tokenizer {
 public:
  static constexpr int32_t kBos = 256;  // "<s>"
  static constexpr int32_t kEos = 257;  // "</s>"

  std::string Decode(std::span<const int32_t> ids, bool skip_special_tokens) const override {
    Stream stream(skip_special_tokens);
    std::string text;
    for (const int32_t id : ids) text += stream.Push(id);
    return text + stream.Flush();
  }
  std::unique_ptr<StreamDecoder> NewStream(bool skip_special_tokens,
                                           const CancelToken* = nullptr) const override {
    return std::make_unique<Stream>(skip_special_tokens);
  }
  int32_t VocabSize() const override { return kEos + 1; }
  bool IsSpecial(int32_t id) const override { return id == kBos || id == kEos; }
  std::optional<std::string> IdToToken(int32_t id) const override {
    if (id < 0 || id >= VocabSize()) return std::nullopt;
    return Spelling(id);
  }
  std::optional<int32_t> TokenToId(std::string_view token) const override {
    if (token == kBosText) return kBos;
    if (token == kEosText) return kEos;
    if (token.size() == 1) return static_cast<uint8_t>(token[0]);
    return std::nullopt;
  }

 private:
  static constexpr std::string_view kBosText = "<s>";
  static constexpr std::string_view kEosText = "</s>";

  class Stream : public StreamDecoder {
   public:
    explicit Stream(bool skip_special_tokens) : skip_special_tokens_(skip_special_tokens) {}

    std::string Push(int32_t id) override {
      if (id < 0) Throw(ErrorKind::kInput, "token id {} is negative", id);
      if (id >= 256 && skip_special_tokens_) return "";
      return repair_.Push(Spelling(id));
    }
    std::string Flush() override { return repair_.Finish(); }

   private:
    const bool skip_special_tokens_;
    Utf8Repair repair_;
  };

  static std::string Spelling(int32_t id) {
    if (id == kBos) return std::string(kBosText);
    if (id == kEos) return std::string(kEosText);
    return id < 256 ? std::string(1, static_cast<char>(id)) : "";
  }

  std::vector<int32_t> EncodeUpTo(std::string_view text, bool add_special_tokens,
                                  int64_t max_ids) const override {
    std::vector<int32_t> ids;
    if (add_special_tokens) ids.push_back(kBos);
    for (const char c : text) {
      if (std::ssize(ids) > max_ids) break;
      ids.push_back(static_cast<uint8_t>(c));
    }
    return ids;
  }
};

}  // namespace godwit
