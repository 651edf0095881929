// FakeTokenizer: a token is a byte, so that tests of other rooms need no files.
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

#include "text/tokenizer.h"

namespace godwit {

class FakeTokenizer : public Tokenizer {
 public:
  static constexpr int32_t kBos = 256;  // "<s>"
  static constexpr int32_t kEos = 257;  // "</s>"

  std::string Decode(std::span<const int32_t> ids, bool skip_special_tokens) const override;
  std::unique_ptr<StreamDecoder> NewStream(bool skip_special_tokens,
                                           const CancelToken* cancel = nullptr) const override;
  int32_t VocabSize() const override { return kEos + 1; }
  bool IsSpecial(int32_t id) const override { return id == kBos || id == kEos; }
  std::optional<std::string> IdToToken(int32_t id) const override;
  std::optional<int32_t> TokenToId(std::string_view token) const override;

 private:
  std::vector<int32_t> EncodeUpTo(std::string_view text, bool add_special_tokens,
                                  int64_t max_ids) const override;
};

}  // namespace godwit
