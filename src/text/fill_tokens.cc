#include "text/fill_tokens.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "text/leading_tokens.h"

namespace godwit {
namespace {

struct FillRole {
  const char* name;
  std::array<std::string_view, 8> spellings;
};
// Spellings of Qwen and CodeGemma, StarCoder, Granite, DeepSeek, CodeLlama, and GLM.
constexpr FillRole kFillRoles[] = {
    {"prefix",
     {"<|fim_prefix|>", "<fim_prefix>", "<fim-prefix>", "<｜fim▁begin｜>", "▁<PRE>", "<PRE>",
      "<|code_prefix|>"}},
    {"suffix",
     {"<|fim_suffix|>", "<fim_suffix>", "<fim-suffix>", "<｜fim▁hole｜>", "▁<SUF>", "<SUF>",
      "<|code_suffix|>"}},
    {"middle",
     {"<|fim_middle|>", "<fim_middle>", "<fim-middle>", "<｜fim▁end｜>", "▁<MID>", "<MID>",
      "<|code_middle|>"}},
    {"pad", {"<|fim_pad|>", "<fim_pad>", "<fim-pad>", "<PAD>"}},
    {"repository", {"<|repo_name|>", "<repo_name>", "<reponame>", "<|fim_repo|>", "<fim-repo>"}},
    {"file", {"<|file_sep|>", "<file_sep>", "<|file_separator|>", "<filename>"}},
};
constexpr std::string_view kFillEnds[] = {"▁<EOT>", "<EOT>", "<|endoftext|>", "<|end_of_text|>"};

std::optional<int32_t> IdOfRole(const FillRole& role, const std::map<std::string, int32_t>& said,
                                const Tokenizer& tokenizer, int64_t vocab_size) {
  const auto told = said.find(role.name);
  if (told != said.end()) return told->second;
  for (const std::string_view spelling : role.spellings) {
    if (spelling.empty()) break;
    const auto id = tokenizer.TokenToId(spelling);
    if (id && *id < vocab_size) return id;
  }
  return std::nullopt;
}

// Encodes texts so that no token is a special one or one of FillTokens.
class PlainEncoder {
 public:
  PlainEncoder(const FillTokens& tokens, const Tokenizer& tokenizer)
      : tokenizer_(tokenizer), marks_{tokens.prefix, tokens.suffix, tokens.middle} {
    for (const auto& id : {tokens.repository, tokens.file}) {
      if (id) marks_.insert(*id);
    }
    for (const std::string& end : tokens.ends) {
      if (const auto id = tokenizer.TokenToId(end)) marks_.insert(*id);
    }
  }

  void Append(std::string_view text, int64_t max_ids, std::vector<int32_t>& ids) const {
    std::vector<std::string_view> left{text};  // the last one first
    while (!left.empty() && std::ssize(ids) <= max_ids) {
      const std::string_view piece = left.back();
      left.pop_back();
      if (piece.empty()) continue;
      const auto more = tokenizer_.Encode(piece, /*add_special_tokens=*/false, max_ids);
      const auto parts = Parted(piece, more);
      if (parts.size() > 1 && std::ssize(more) <= max_ids) {
        left.insert(left.end(), parts.rbegin(), parts.rend());
      } else {
        ids.insert(ids.end(), more.begin(), more.end());
      }
    }
  }

 private:
  // Cuts the text behind the first byte of each mark spelled out in it. A mark that begins with no
  // ASCII byte stays whole.
  std::vector<std::string_view> Parted(std::string_view text, std::span<const int32_t> ids) const {
    std::set<std::string> spelled;
    for (const int32_t id : std::set<int32_t>(ids.begin(), ids.end())) {
      if (!marks_.contains(id) && !tokenizer_.IsSpecial(id)) continue;
      const auto token = tokenizer_.IdToToken(id);
      if (token && token->size() > 1 && static_cast<unsigned char>(token->front()) < 0x80) {
        spelled.insert(*token);
      }
    }
    std::set<size_t> cuts;
    for (const std::string& mark : spelled) {
      for (size_t at = text.find(mark); at != text.npos; at = text.find(mark, at + 1)) {
        cuts.insert(at + 1);
      }
    }
    std::vector<std::string_view> parts;
    size_t begin = 0;
    for (const size_t cut : cuts) {
      parts.push_back(text.substr(begin, cut - begin));
      begin = cut;
    }
    parts.push_back(text.substr(begin));
    return parts;
  }

  const Tokenizer& tokenizer_;
  std::set<int32_t> marks_;
};

}  // namespace

std::optional<FillTokens> FindFillTokens(const std::map<std::string, int32_t>& said,
                                         const Tokenizer& tokenizer,
                                         std::span<const int32_t> eos_ids, int64_t vocab_size) {
  std::array<std::optional<int32_t>, std::size(kFillRoles)> ids;
  std::set<int32_t> ends;
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = IdOfRole(kFillRoles[i], said, tokenizer, vocab_size);
    if (ids[i]) ends.insert(*ids[i]);
    if (!ids[i] && i < 3) return std::nullopt;
  }
  for (const std::string_view end : kFillEnds) {
    const auto id = tokenizer.TokenToId(end);
    if (id && *id < vocab_size) ends.insert(*id);
  }
  FillTokens tokens{.prefix = *ids[0],
                    .suffix = *ids[1],
                    .middle = *ids[2],
                    .repository = ids[4],
                    .file = ids[5],
                    .ends = {}};
  for (const int32_t id : ends) {
    if (std::find(eos_ids.begin(), eos_ids.end(), id) != eos_ids.end()) continue;
    if (auto spelled = tokenizer.IdToToken(id)) tokens.ends.push_back(std::move(*spelled));
  }
  return tokens;
}

std::vector<int32_t> EncodeFillIn(const FillIn& fill, const FillTokens& tokens,
                                  const Tokenizer& tokenizer, int64_t max_ids) {
  std::vector<int32_t> ids = LeadingTokens([&](std::string_view text, bool add_special_tokens) {
    return tokenizer.Encode(text, add_special_tokens);
  });
  const PlainEncoder encoder(tokens, tokenizer);
  const auto add = [&](std::string_view text) { encoder.Append(text, max_ids, ids); };
  if (tokens.file && !fill.files.empty()) {
    if (tokens.repository) {
      ids.push_back(*tokens.repository);
      add("project\n");
    }
    for (const auto& [name, text] : fill.files) {
      ids.push_back(*tokens.file);
      add(name + "\n" + text);
    }
    ids.push_back(*tokens.file);
    add("current\n");
  }
  ids.push_back(tokens.prefix);
  if (!tokens.file) {
    for (const auto& [name, text] : fill.files) add(name + "\n" + text + "\n");
  }
  add(fill.before);
  ids.push_back(tokens.suffix);
  add(fill.behind);
  ids.push_back(tokens.middle);
  add(fill.begun);
  return ids;
}

}  // namespace godwit
