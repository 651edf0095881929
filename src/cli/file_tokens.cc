#include "cli/file_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/quote.h"
#include "console/terminal/format.h"

namespace godwit::cli {
namespace {

constexpr size_t kShownFiles = 12;
// Tokens beyond the limit are counted up to this factor, which shows how much would have to go.
constexpr int64_t kCountedBeyond = 8;

std::string TokensText(const FileTokens& file) {
  return fmt::format("{}{}", file.or_more ? "more than " : "",
                     console::Plural(file.tokens, "token"));
}

FileTokens Sum(std::span<const FileTokens> files) {
  FileTokens sum;
  for (const FileTokens& file : files) {
    sum.tokens += file.tokens;
    sum.or_more |= file.or_more;
  }
  return sum;
}

}  // namespace

std::vector<FileTokens> CountTokens(
    std::span<const console::NamedText> texts, int64_t limit_tokens,
    FunctionRef<std::vector<int32_t>(std::string_view text, int64_t limit_tokens)> encode) {
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  const int64_t most = limit_tokens > kAny / kCountedBeyond ? kAny : kCountedBeyond * limit_tokens;
  std::vector<FileTokens> files;
  for (const console::NamedText& text : texts) {
    const int64_t tokens = std::ssize(encode(text.text, most));
    files.push_back(
        {.name = text.name, .tokens = std::min(tokens, most), .or_more = tokens > most});
  }
  return files;
}

std::string Describe(std::span<const FileTokens> files) {
  // Naming a single remaining file takes no more space than counting it.
  const size_t shown = files.size() > kShownFiles + 1 ? kShownFiles : files.size();
  std::string text;
  for (const FileTokens& file : files.first(shown)) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", QuoteUnlessPlain(file.name),
                        TokensText(file));
  }
  if (shown < files.size()) {
    text += fmt::format(", and {} more files: {}", files.size() - shown,
                        TokensText(Sum(files.subspan(shown))));
  }
  if (files.size() > 1) text += "; together " + TokensText(Sum(files));
  return text;
}

}  // namespace godwit::cli
