#include "engine/make_drafts.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include "attention/core/token_count.h"
#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "base/split_text.h"
#include "checkpoint/model_folder.h"
#include "generate/ngram_table_drafts.h"
#include "generate/recycled_drafts.h"
#include "generate/suffix_drafts.h"

namespace godwit {

std::shared_ptr<HeadBatch> LoadDraftHeads(const std::string& folder, const LanguageModel& model,
                                          uint64_t digest, ThreadPool& pool, DType storage,
                                          NowMs now_ms) {
  const std::filesystem::path file =
      folder.empty() ? DraftHeads::kFileName : ModelFolder(folder).draft_heads_file();
  if (folder.empty() || !IsListed(file)) {
    ThrowWith({.code = ErrorCode::kNoDraftHeads}, ErrorKind::kInput, "{} has no {}",
              folder.empty() ? "the model" : QuoteUnlessPlain(folder),
              QuoteUnlessPlain(file.filename().native()));
  }
  auto parameters = ReadDraftHeads(file, model.hidden_size(), model.vocab_size(), digest);
  // Newly packed weights are never stored as f16.
  return std::make_shared<HeadBatch>(
      std::make_shared<const DraftHeads>(pool, std::move(parameters),
                                         storage == DType::kF16 ? DType::kBF16 : storage),
      now_ms);
}

namespace {

std::vector<std::string_view> SourcesIn(std::string_view names) { return SplitAt(',', names); }

// Parses "n=4:k=20:lag=1024", each optional.
NgramTableDrafts::Options NgramTableOptions(std::string_view text) {
  constexpr int64_t kMostLag = int64_t{1} << 20;
  NgramTableDrafts::Options options;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(':'));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::string_view key = item.substr(0, item.find('='));
    const auto number = ParseTokenCount(item.substr(std::min(item.size(), key.size() + 1)));
    const auto take = [&](int64_t& option, int64_t least, int64_t most) {
      if (!number || *number < least || *number > most) {
        Throw(ErrorKind::kInput,
              "the draft source \"ngram-table\": {}: expected {} to {}, found {}", key, least, most,
              Quote(item));
      }
      option = *number;
    };
    if (key == "n") {
      take(options.n, 2, NgramTableDrafts::kMaxTokens);
    } else if (key == "k") {
      take(options.k, 1, NgramTableDrafts::kMaxOffered);
    } else if (key == "lag") {
      take(options.lag, 0, kMostLag);
    } else {
      Throw(ErrorKind::kInput,
            "the draft source \"ngram-table\": expected n=N, k=N or lag=N, found {}", Quote(item));
    }
  }
  return options;
}

}  // namespace

bool NamesMtp(std::string_view names) { return std::ranges::count(SourcesIn(names), "mtp") > 0; }

bool NamesDraftModel(std::string_view names) {
  return std::ranges::any_of(SourcesIn(names), [](std::string_view source) {
    const std::string_view name = source.substr(0, source.find(':'));
    return name == "model" || name == "triforce";
  });
}

std::string Eagle3FolderIn(std::string_view names) {
  constexpr std::string_view kName = "eagle3:";
  for (const std::string_view source : SourcesIn(names)) {
    if (source.starts_with(kName)) return std::string(source.substr(kName.size()));
  }
  return "";
}

std::vector<std::unique_ptr<DraftSource>> MakeDrafts(std::string_view names,
                                                     const DraftParts& parts) {
  std::vector<std::unique_ptr<DraftSource>> sources;
  std::vector<std::string_view> known;
  for (const std::string_view source : SourcesIn(names)) {
    const std::string_view name = source.substr(0, source.find(':'));
    const std::string_view arguments = source.substr(std::min(source.size(), name.size() + 1));
    if (std::ranges::find(known, name) != known.end()) {
      Throw(ErrorKind::kInput, "the draft source {} is named twice", Quote(name));
    }
    known.push_back(name);
    if (source == "ngram") {
      sources.push_back(std::make_unique<SuffixDrafts>());
      sources.push_back(std::make_unique<RecycledDrafts>(parts.vocab));
    } else if (source == "heads") {
      sources.push_back(std::make_unique<HeadDrafts>(parts.heads()));
    } else if (source == "mtp") {
      sources.push_back(parts.mtp());
    } else if (name == "ngram-table") {
      sources.push_back(std::make_unique<NgramTableDrafts>(NgramTableOptions(arguments)));
    } else if (source == "model") {
      sources.push_back(parts.model());
    } else if (name == "eagle3") {
      sources.push_back(parts.eagle3(arguments));
    } else if (name == "partial") {
      sources.push_back(parts.partial(arguments));
    } else if (name == "triforce") {
      sources.push_back(parts.triforce(arguments));
    } else {
      Throw(ErrorKind::kInput,
            "unknown draft source {}; there are: ngram, ngram-table, model, mtp, eagle3, heads, "
            "partial, triforce",
            Quote(source));
    }
  }
  return sources;
}

}  // namespace godwit
