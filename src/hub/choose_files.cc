#include "hub/choose_files.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/machine_memory.h"
#include "base/name_list.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "checkpoint/gguf_choice.h"
#include "hub/hub_name.h"
#include "weights/gguf_files.h"

namespace godwit::hub {
namespace {

namespace fs = std::filesystem;

// Files of a checkpoint beside its weights.
constexpr std::string_view kSmallFiles[] = {"config.json",
                                            "generation_config.json",
                                            "tokenizer.json",
                                            "tokenizer_config.json",
                                            "special_tokens_map.json",
                                            "added_tokens.json",
                                            "tokenizer.model",
                                            "spiece.model",
                                            "vocab.json",
                                            "merges.txt",
                                            "vocab.txt",
                                            "tekken.json",
                                            "tiktoken.model",
                                            "chat_template.jinja",
                                            "chat_template.json"};
constexpr std::string_view kTemplates = "additional_chat_templates/";
constexpr std::string_view kWhole = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";

bool IsSmallFile(const std::string& name) {
  return std::find(std::begin(kSmallFiles), std::end(kSmallFiles), name) != std::end(kSmallFiles) ||
         (name.starts_with(kTemplates) && name.ends_with(".jinja"));
}

// Whether a name is such as "model-00001-of-00002.safetensors", a shard of an index. Other files
// are the same weights in another form (consolidated.safetensors), or something else.
bool IsShard(const std::string& name) {
  return name.starts_with("model-") && name.ends_with(".safetensors") &&
         name.find("-of-") != name.npos && name.find('/') == name.npos;
}

bool Has(const Listing& listing, std::string_view name) {
  return std::any_of(listing.files.begin(), listing.files.end(),
                     [&](const RemoteFile& file) { return file.name == name; });
}

ChosenFiles Checkpoint(const Listing& listing) {
  const bool in_shards = Has(listing, kIndex);
  ChosenFiles chosen;
  for (const RemoteFile& file : listing.files) {
    const bool is_index = in_shards && file.name == kIndex;
    if (is_index || IsSmallFile(file.name)) chosen.files.push_back(file);
  }
  for (const RemoteFile& file : listing.files) {
    if (in_shards ? IsShard(file.name) : file.name == kWhole) chosen.files.push_back(file);
  }
  return chosen;
}

// The GGUF models of a repository, each by its first part.
class Models {
 public:
  explicit Models(const Listing& listing) : repository_(listing.repository) {
    std::vector<fs::path> files;
    for (const RemoteFile& file : listing.files) {
      by_name_[file.name] = &file;
      // The search goes as deep as that through the cache.
      if (std::count(file.name.begin(), file.name.end(), '/') <= 1) files.emplace_back(file.name);
    }
    files_ = GgufModelsAmong(std::move(files));
    // A limit, because each model is compared with each to find words that tell them apart.
    constexpr size_t kMost = 200;
    if (files_.size() > kMost) {
      Throw(ErrorKind::kUnsupported, "{} has {} GGUF models, expected at most {}", repository_,
            files_.size(), kMost);
    }
  }

  const std::vector<fs::path>& files() const { return files_; }

  ChosenFiles Choose(const fs::path& file) const {
    const std::vector<std::string> words = GgufWords(files_);
    const auto at = std::find(files_.begin(), files_.end(), file) - files_.begin();
    ChosenFiles chosen{.word = words[at]};
    for (const fs::path& part : GgufParts(file)) {
      const auto found = by_name_.find(part.native());
      if (found == by_name_.end()) {
        Throw(ErrorKind::kFormat, "{} has {}, but its part {} is missing", repository_,
              Quote(file.native()), Quote(part.native()));
      }
      chosen.files.push_back(*found->second);
    }
    return chosen;
  }

  // A line for each model, the smallest first: "  org/name:Q4_K_M  398 MiB".
  std::string Lines(const std::vector<fs::path>& files) const {
    constexpr size_t kMaxLines = 40;
    const std::vector<std::string> words = GgufWords(files);
    std::vector<std::pair<int64_t, std::string>> models;
    size_t width = 0;
    for (size_t i = 0; i < files.size(); ++i) {
      models.emplace_back(BytesOf(files[i]), Spelling(repository_, words[i]));
      width = std::max(width, models.back().second.size());
    }
    std::sort(models.begin(), models.end());
    std::string lines;
    for (size_t i = 0; i < std::min(models.size(), kMaxLines); ++i) {
      const auto& [bytes, spelling] = models[i];
      lines += bytes < 0 ? "\n  " + spelling
                         : fmt::format("\n  {:<{}}  {}", spelling, width, FormatBytes(bytes));
    }
    if (models.size() > kMaxLines) {
      lines += fmt::format("\n  and {} more", models.size() - kMaxLines);
    }
    return lines;
  }

  std::vector<std::string> words() const { return GgufWords(files_); }

 private:
  // The size of a model's files. -1: unknown.
  int64_t BytesOf(const fs::path& file) const {
    int64_t bytes = 0;
    for (const fs::path& part : GgufParts(file)) {
      const auto found = by_name_.find(part.native());
      if (found == by_name_.end() || found->second->bytes < 0) return -1;
      bytes += found->second->bytes;
    }
    return bytes;
  }

  std::string repository_;
  std::map<std::string, const RemoteFile*> by_name_;
  std::vector<fs::path> files_;
};

[[noreturn]] void RefuseQuant(const Models& models, const std::string& repository,
                              const std::string& quant) {
  if (models.files().empty()) {
    Throw(ErrorKind::kIo, "{}: there is no GGUF model in {}", Spelling(repository, quant),
          repository);
  }
  const auto nearest = Nearest(quant, models.words());
  Throw(ErrorKind::kIo, "{}: there is no such GGUF model{}; there is{}",
        Spelling(repository, quant),
        nearest ? fmt::format(", did you mean {}?", Spelling(repository, *nearest)) : "",
        models.Lines(models.files()));
}

}  // namespace

ChosenFiles ChooseFiles(const Listing& listing, const std::string& quant) {
  const Models models(listing);
  if (quant.empty()) {
    if (Has(listing, kWhole) || Has(listing, kIndex)) return Checkpoint(listing);
    if (models.files().empty()) {
      Throw(ErrorKind::kUnsupported, "{}: expected {} or a GGUF file, found {}", listing.repository,
            kWhole,
            listing.files.empty()
                ? "no files"
                : FirstNames(
                      Names(listing.files, [](const RemoteFile& file) { return Quote(file.name); }),
                      8));
    }
  }
  const std::vector<fs::path> found =
      quant.empty() ? models.files() : GgufCalled(quant, models.files());
  if (found.empty()) RefuseQuant(models, listing.repository, quant);
  if (found.size() > 1) {
    Throw(ErrorKind::kInput, "{} {} {} GGUF models, expected one: choose one of{}",
          Spelling(listing.repository, quant), quant.empty() ? "has" : "matches", found.size(),
          models.Lines(found));
  }
  return models.Choose(found.front());
}

}  // namespace godwit::hub
