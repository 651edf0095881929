#include "lab/scored_files.h"

#include <cstdint>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "console/options/text_input.h"

namespace godwit::lab {

void AddScoredFilesFlags(console::CommandLine& line, ScoredFiles& options) {
  line.Group("Text");
  line.Add({.names = "-f,--file",
            .value = "FILE",
            .help = "the text (-: standard input); may be repeated: the files are joined in order",
            .takes_list = true},
           options.files);
  line.Add({.names = "--reset", .value = "", .help = "take each file as its own text"},
           options.reset);
  console::AddLossyFlag(line, options.lossy);
}

std::vector<std::string> ReadFiles(const ScoredFiles& options) {
  std::vector<std::string> contents;
  for (const std::string& file : options.files) {
    contents.push_back(console::ReadInputFile(file, options.lossy));
    if (contents.back().empty()) {
      Throw(ErrorKind::kInput, "{} is empty: there is nothing to score",
            file == "-" ? "standard input" : QuoteUnlessPlain(file));
    }
  }
  return contents;
}

std::vector<console::NamedFile> Inputs(const ScoredFiles& options,
                                       std::vector<console::NamedFile> others) {
  for (const std::string& file : options.files) others.push_back({"-f", file});
  return others;
}

std::vector<std::vector<int32_t>> TokenizeFiles(const Engine& engine,
                                                std::vector<std::string> contents, bool reset,
                                                int64_t scored_tokens) {
  // The limit counts two tokens for each scored one: a window's first token may not be scored, and
  // a second one follows it. A text's last window may have one token alone, so each text adds two.
  const bool all = scored_tokens < 0 || scored_tokens > INT64_MAX / 4;
  int64_t left = all ? INT64_MAX : 2 * (scored_tokens + std::ssize(contents));
  std::vector<std::vector<int32_t>> texts(1);
  for (std::string& content : contents) {
    if (left < 0) break;
    auto tokens = engine.Tokenize(std::exchange(content, ""), /*add_special=*/false, left);
    left -= std::ssize(tokens);
    if (texts.back().empty()) {
      texts.back() = std::move(tokens);
    } else if (reset) {
      texts.push_back(std::move(tokens));
    } else {
      texts.back().insert(texts.back().end(), tokens.begin(), tokens.end());
    }
  }
  return texts;
}

}  // namespace godwit::lab
