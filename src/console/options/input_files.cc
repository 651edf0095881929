#include "console/options/input_files.h"

#include <glob.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "console/options/text_input.h"
#include "console/terminal/output.h"

namespace godwit::console {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxTogetherBytes = size_t{1} << 30;
constexpr int64_t kShownNames = 3;

// Whether a file begins with a NUL among its first bytes, before a large file is read whole.
bool BeginsAsBinary(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string begin(size_t{64} << 10, ' ');
  file.read(begin.data(), std::ssize(begin));
  begin.resize(file.gcount());
  return begin.find('\0') != std::string::npos;
}

std::vector<fs::path> FilesOf(const fs::path& folder) {
  std::vector<fs::path> files;
  for (auto entry = fs::recursive_directory_iterator(folder); entry != fs::end(entry); ++entry) {
    if (entry->path().filename().native().starts_with('.')) {
      entry.disable_recursion_pending();
    } else if (entry->is_regular_file()) {
      files.push_back(entry->path());
    }
  }
  std::ranges::sort(files);
  return files;
}

void ReadFolder(const std::string& name, bool lossy, std::vector<NamedText>& texts) {
  const size_t before = texts.size();
  std::vector<std::string> others;
  for (const fs::path& path : FilesOf(name)) {
    std::optional<std::string> text;
    // --lossy turns bytes that are not UTF-8 into U+FFFD, but a NUL is no character of a text.
    if (!BeginsAsBinary(path)) text = ReadFileBytes(path);
    if (text && !lossy && FirstInvalidUtf8(*text)) text.reset();
    if (!text) {
      others.push_back(QuoteUnlessPlain(path.lexically_relative(name).native()));
    } else {
      texts.push_back({path.native(), lossy ? ReplaceInvalidUtf8(*text) : *std::move(text)});
    }
  }
  if (texts.size() == before) {
    Throw(ErrorKind::kIo, "{}: expected a folder with text files, found none in it",
          QuoteUnlessPlain(name));
  }
  if (!others.empty()) {
    WriteStatus(fmt::format("godwit: {}: left out, because it is not UTF-8 text: {}\n",
                            QuoteUnlessPlain(name), FirstNames(others, kShownNames)));
  }
}

// The matching names in order. Empty: nothing matches.
std::vector<std::string> Matches(const std::string& pattern) {
  glob_t found{};
  const std::unique_ptr<glob_t, decltype(&globfree)> free_found(&found, globfree);
  if (glob(pattern.c_str(), 0, nullptr, &found) != 0) return {};
  return {found.gl_pathv, found.gl_pathv + found.gl_pathc};
}

void ReadNamed(const std::string& name, bool lossy, std::vector<NamedText>& texts) {
  std::error_code ignored;
  if (fs::is_directory(name, ignored)) return ReadFolder(name, lossy, texts);
  const bool is_pattern =
      name.find_first_of("*?[") != std::string::npos && !fs::exists(name, ignored);
  if (!is_pattern) {
    texts.push_back({name == "-" ? kStandardInput : name, ReadInputFile(name, lossy)});
    return;
  }
  const std::vector<std::string> matches = Matches(name);
  if (matches.empty()) Throw(ErrorKind::kIo, "no file matches {}", Quote(name));
  for (const std::string& match : matches) ReadNamed(match, lossy, texts);
}

}  // namespace

std::vector<NamedText> ReadInputFiles(std::span<const std::string> names, bool lossy) {
  if (std::ranges::count(names, "-") > 1) {
    Throw(ErrorKind::kInput, "standard input is named twice, but can be read only once");
  }
  std::vector<NamedText> texts;
  for (const std::string& name : names) ReadNamed(name, lossy, texts);
  size_t bytes = 0;
  for (const NamedText& text : texts) bytes += text.text.size();
  if (bytes > kMaxTogetherBytes) {
    Throw(ErrorKind::kInput,
          "{} files are larger than 1 GiB together, the most that can be read at once",
          texts.size());
  }
  return texts;
}

std::string ReadJoinedFiles(std::span<const std::string> names, bool lossy) {
  std::vector<NamedText> texts = ReadInputFiles(names, lossy);
  std::string all = std::move(texts.front().text);
  for (const NamedText& text : std::span(texts).subspan(1)) all += text.text;
  return all;
}

std::string NamesOf(std::span<const std::string> names) {
  const std::string first = names.front() == "-" ? kStandardInput : QuoteUnlessPlain(names.front());
  return names.size() == 1 ? first : fmt::format("{} and {} more", first, names.size() - 1);
}

}  // namespace godwit::console
