#include "text/load_tokenizer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "text/ffi_call.h"
#include "text/utf8.h"

namespace godwit {
namespace {

// Ten times the largest known.
constexpr size_t kMaxTokenizerBytes = size_t{256} << 20;

uint32_t CheckId(int32_t id) {
  if (id < 0) Throw(ErrorKind::kInput, "token id {} is negative", id);
  return static_cast<uint32_t>(id);
}

class HfStream : public StreamDecoder {
 public:
  explicit HfStream(FfiStream stream) : stream_(std::move(stream)) {}

  std::string Push(int32_t id) override {
    godwit_text_view text;
    CheckFfi("decoding", [&](godwit_text_string* error) {
      return godwit_stream_push(stream_.get(), CheckId(id), &text, error);
    });
    return std::string(text.data, text.size);
  }

  std::string Flush() override {
    godwit_text_view text;
    CheckFfi("decoding", [&](godwit_text_string* error) {
      return godwit_stream_flush(stream_.get(), &text, error);
    });
    return std::string(text.data, text.size);
  }

 private:
  FfiStream stream_;
};

class HfTokenizer : public Tokenizer {
 public:
  HfTokenizer(FfiTokenizer tokenizer, int32_t vocab_size)
      : tokenizer_(std::move(tokenizer)), vocab_size_(vocab_size) {}

  std::vector<int32_t> Encode(std::string_view text, bool add_special_tokens) const override {
    const std::string valid = ReplaceInvalidUtf8(text);
    godwit_text_ids ids = {nullptr, 0};
    CheckFfi("encoding", [&](godwit_text_string* error) {
      return godwit_tokenizer_encode(tokenizer_.get(), ToFfi(valid), add_special_tokens, &ids,
                                     error);
    });
    const auto free = [&](uint32_t*) { godwit_text_ids_free(ids); };
    const std::unique_ptr<uint32_t, decltype(free)> owner(ids.data, free);
    return std::vector<int32_t>(ids.data, ids.data + ids.size);
  }

  std::string Decode(std::span<const int32_t> ids, bool skip_special_tokens) const override {
    std::vector<uint32_t> unsigned_ids;
    unsigned_ids.reserve(ids.size());
    for (const int32_t id : ids) unsigned_ids.push_back(CheckId(id));
    FfiString text;
    CheckFfi("decoding", [&](godwit_text_string* error) {
      return godwit_tokenizer_decode(tokenizer_.get(), unsigned_ids.data(), unsigned_ids.size(),
                                     skip_special_tokens, text.get(), error);
    });
    return text.Copy();
  }

  std::unique_ptr<StreamDecoder> NewStream(bool skip_special_tokens) const override {
    return std::make_unique<HfStream>(
        FfiStream(godwit_stream_new(tokenizer_.get(), skip_special_tokens)));
  }

  int32_t VocabSize() const override { return vocab_size_; }

  bool IsSpecial(int32_t id) const override {
    return id >= 0 && godwit_tokenizer_is_special(tokenizer_.get(), static_cast<uint32_t>(id));
  }

  std::optional<std::string> IdToToken(int32_t id) const override {
    if (id < 0) return std::nullopt;
    FfiString token;
    const auto unsigned_id = static_cast<uint32_t>(id);
    if (!godwit_tokenizer_id_to_token(tokenizer_.get(), unsigned_id, token.get())) {
      return std::nullopt;
    }
    return token.Copy();
  }

  std::optional<int32_t> TokenToId(std::string_view token) const override {
    const int64_t id = godwit_tokenizer_token_to_id(tokenizer_.get(), ToFfi(token));
    if (id < 0) return std::nullopt;
    return static_cast<int32_t>(id);
  }

 private:
  FfiTokenizer tokenizer_;
  int32_t vocab_size_;
};

bool IsLlamaKind(std::string_view tokenizer_class) {
  constexpr std::array<std::string_view, 4> kKinds = {"Llama", "CodeLlama", "Gemma", "Cohere"};
  return std::any_of(kKinds.begin(), kKinds.end(), [&](std::string_view kind) {
    std::string_view rest = tokenizer_class;
    if (!rest.starts_with(kind)) return false;
    rest.remove_prefix(kind.size());
    return rest == "Tokenizer" || rest == "TokenizerFast";
  });
}

// The token that frames a prompt, or empty where the config declines it.
std::string Framing(const TokenizerConfig& config, std::string_view what, const char* flag_name,
                    bool flag, const char* token_name) {
  if (!flag) return "";
  const auto token = config.named_tokens.find(token_name);
  if (token == config.named_tokens.end() || token->second.empty()) {
    Throw(ErrorKind::kFormat, "{}: tokenizer_config.json sets {} but names no {}", what, flag_name,
          token_name);
  }
  return token->second;
}

}  // namespace

std::unique_ptr<Tokenizer> ParseTokenizer(std::string_view json, std::string_view what,
                                          const TokenizerConfig& config) {
  godwit_tokenizer* raw = nullptr;
  CheckFfi(what, [&](godwit_text_string* error) {
    return godwit_tokenizer_new(ToFfi(json), &raw, error);
  });
  FfiTokenizer tokenizer(raw);
  const size_t vocab_size = godwit_tokenizer_vocab_size(raw);
  if (vocab_size == 0) Throw(ErrorKind::kFormat, "{}: the vocabulary is empty", what);
  if (vocab_size > size_t{std::numeric_limits<int32_t>::max()}) {
    Throw(ErrorKind::kFormat, "{}: token id {} exceeds the largest possible", what, vocab_size - 1);
  }
  if (IsLlamaKind(config.tokenizer_class) && (config.add_bos_token || config.add_eos_token)) {
    // The defaults are those of LlamaTokenizerFast.
    const std::string bos =
        Framing(config, what, "add_bos_token", config.add_bos_token.value_or(true), "bos_token");
    const std::string eos =
        Framing(config, what, "add_eos_token", config.add_eos_token.value_or(false), "eos_token");
    CheckFfi(what, [&](godwit_text_string* error) {
      return godwit_tokenizer_set_bos_eos(raw, ToFfi(bos), ToFfi(eos), error);
    });
  }
  return std::make_unique<HfTokenizer>(std::move(tokenizer), static_cast<int32_t>(vocab_size));
}

std::unique_ptr<Tokenizer> LoadTokenizer(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "tokenizer.json";
  if (!IsListed(file) && IsListed(folder / "tokenizer.model")) {
    Throw(ErrorKind::kUnsupported,
          "{}: found tokenizer.model but no tokenizer.json; loading the folder with transformers "
          "and saving its tokenizer writes one",
          folder.native());
  }
  const std::string json = ReadTextFile(file, kMaxTokenizerBytes);
  return ParseTokenizer(json, file.string(), ReadTokenizerConfig(folder));
}

}  // namespace godwit
