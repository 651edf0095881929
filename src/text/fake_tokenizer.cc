#include "text/fake_tokenizer.h"

#include "base/error.h"
#include "text/utf8.h"

namespace godwit {
namespace {

constexpr std::string_view kBosText = "<s>";
constexpr std::string_view kEosText = "</s>";

std::string Spelling(int32_t id) {
  if (id == FakeTokenizer::kBos) return std::string(kBosText);
  if (id == FakeTokenizer::kEos) return std::string(kEosText);
  return id < 256 ? std::string(1, static_cast<char>(id)) : "";
}

class FakeStream : public StreamDecoder {
 public:
  explicit FakeStream(bool skip_special_tokens) : skip_special_tokens_(skip_special_tokens) {}

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

}  // namespace

std::vector<int32_t> FakeTokenizer::EncodeUpTo(std::string_view text, bool add_special_tokens,
                                               int64_t max_ids) const {
  std::vector<int32_t> ids;
  if (add_special_tokens) ids.push_back(kBos);
  for (const char c : text) {
    if (std::ssize(ids) > max_ids) break;
    ids.push_back(static_cast<uint8_t>(c));
  }
  return ids;
}

std::string FakeTokenizer::Decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  FakeStream stream(skip_special_tokens);
  std::string text;
  for (const int32_t id : ids) text += stream.Push(id);
  return text + stream.Flush();
}

std::unique_ptr<StreamDecoder> FakeTokenizer::NewStream(bool skip_special_tokens,
                                                        const CancelToken* /*cancel*/) const {
  return std::make_unique<FakeStream>(skip_special_tokens);
}

std::optional<std::string> FakeTokenizer::IdToToken(int32_t id) const {
  if (id < 0 || id >= VocabSize()) return std::nullopt;
  return Spelling(id);
}

std::optional<int32_t> FakeTokenizer::TokenToId(std::string_view token) const {
  if (token == kBosText) return kBos;
  if (token == kEosText) return kEos;
  if (token.size() == 1) return static_cast<uint8_t>(token[0]);
  return std::nullopt;
}

}  // namespace godwit
