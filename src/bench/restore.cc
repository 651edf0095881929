#include "bench/restore.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "attention/core/restore_text.h"
#include "attention/make_policy.h"
#include "base/error.h"
#include "base/fnv.h"
#include "base/open_file.h"
#include "base/stopwatch.h"
#include "base/system/advice.h"
#include "base/system/file_space.h"
#include "bench/kv_fill.h"
#include "bench/statistics.h"
#include "bench/suite_texts.h"
#include "kv/snapshot_folder.h"

namespace godwit::bench {
namespace {

namespace fs = std::filesystem;

const SnapshotFacts kFacts = {{"bench", "restore"}};

std::vector<int32_t> Tokens(const DecoderSpec& spec, int64_t count) {
  std::vector<int32_t> tokens(count);
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<int32_t>(i * 7919 % static_cast<size_t>(spec.vocab_size));
  }
  return tokens;
}

std::vector<fs::path> FilesOf(const SnapshotFolder& folder) {
  std::vector<fs::path> files;
  for (const auto& file : fs::directory_iterator(folder.path())) files.push_back(file.path());
  return files;
}

// Drops a file from the system's cache, as far as the system takes advice.
void Forget(const fs::path& path) {
  const OpenedFile file = OpenRegularFile(path);
  SyncData(file.descriptor.get());
  DropFromCache(file.descriptor.get(), 0, 0);
}

void ReadInOrder(const fs::path& path) {
  const OpenedFile file = OpenRegularFile(path);
  godwit::ReadInOrder(file.descriptor.get());
  std::vector<std::byte> buffer(size_t{4} << 20);
  ssize_t bytes;
  do {
    bytes = read(file.descriptor.get(), buffer.data(), buffer.size());
  } while (bytes > 0);
  if (bytes < 0) ThrowErrno(path, "read");
}

class Restore {
 public:
  Restore(const Decoder& model, const SuiteOptions& options, const fs::path& folder, int64_t tokens)
      : model_(model),
        options_(options),
        pool_(PoolFor(model, options)),
        threads_(options.cases.front().threads),
        exec_{.pool = threads_, .kernels = *options.isa->table, .workspace = workspace_},
        tokens_(Tokens(model.spec(), tokens)),
        text_(NewText()),
        folder_(folder, INT64_MAX) {
    const KvSample sample(model_, exec_, std::span(tokens_).first(64));
    sample.Extend(*text_, exec_, tokens - (recurrent() ? kTileTokens : 0), options_.chunk_tokens);
    ReadRest(*text_);
    answered_ = text_->Fork();
    NextToken(*answered_);
  }

  RestoreResult Run(const std::function<void()>& on_round) {
    RestoreResult result{.tokens = std::ssize(tokens_)};
    std::vector<double> save, disk, token_cold, token_warm, token_memory, open, cold, warm;
    std::set<uint64_t> hashes;
    const auto time = [](std::vector<double>& to, const auto& work) {
      const Stopwatch watch;
      work();
      to.push_back(watch.ms() / 1000);
    };
    const auto forget = [&] { std::ranges::for_each(FilesOf(folder_), Forget); };
    const auto read_in_order = [&] {
      forget();
      time(disk, [&] { std::ranges::for_each(FilesOf(folder_), ReadInOrder); });
    };
    for (int64_t round = 0; round < options_.rounds; ++round) {
      Clear();
      time(save, [&] { Save(); });
      forget();
      time(token_cold, [&] { hashes.insert(NextToken(*RestoredText())); });
      time(token_warm, [&] { hashes.insert(NextToken(*RestoredText())); });
      time(token_memory, [&] { hashes.insert(NextToken(*text_->Fork())); });
      forget();
      time(open, [&] { RestoredText(); });
      // A disk with a cache of its own reads recent data faster. The plain reading is therefore
      // measured on both sides of the others.
      read_in_order();
      forget();
      time(cold, [&] { Verify(*RestoredText()); });
      time(warm, [&] { Verify(*RestoredText()); });
      read_in_order();
      on_round();
    }
    for (const auto& entry : folder_.Entries()) result.bytes += entry.all_bytes();
    Clear();
    result.save = Median(save);
    result.disk = Median(disk);
    result.first_token_cold = Median(token_cold);
    result.first_token_warm = Median(token_warm);
    result.first_token_memory = Median(token_memory);
    result.open = Median(open);
    result.restore_cold = Median(cold);
    result.restore_warm = Median(warm);
    result.logits_agree = hashes.size() == 1;
    result.replayed_tokens = replayed_tokens_;
    return result;
  }

 private:
  bool recurrent() const { return pool_->layout().states.layers > 0; }

  std::unique_ptr<TextCache> NewText() const {
    PolicyOptions policy = options_.policy;
    policy.context = std::ssize(tokens_) + 1;
    auto text = MakeTextCache(Geometry(model_.spec()), policy, pool_);
    text->SetQuestion(std::ssize(tokens_));
    return text;
  }

  void Clear() {
    for (const auto& entry : folder_.Entries()) folder_.Remove(entry.name);
  }

  // Saves the text in the state behind an answer.
  void Save() {
    folder_.Save(kFacts, "bench", tokens_, text_->cache(),
                 recurrent() ? &text_->states() : nullptr);
    folder_.SaveIndex(kFacts, tokens_, answered_->index());
  }

  std::unique_ptr<TextCache> RestoredText() {
    auto text = NewText();
    RestoreText(folder_, folder_.Longest(kFacts, tokens_), INT64_MAX, *text);
    replayed_tokens_ = std::ssize(tokens_) - text->length();
    ReadRest(*text);
    return text;
  }

  void Verify(const TextCache& text) const {
    for (int64_t layer = 0; layer < pool_->layout().layers; ++layer) {
      text.cache().WillRead(layer, {0, text.length()});
    }
  }

  // Reads the tokens that the text lacks. Recurrent layers have no states of drawn keys, and are
  // saved as of an earlier token.
  void ReadRest(TextCache& text) {
    const auto rest = std::span(tokens_).subspan(text.length());
    if (rest.empty()) return;
    Workspace::Scope scope(workspace_);
    const Segment segment{.tokens = rest, .text = &text};
    model_.Forward(exec_, std::span(&segment, 1),
                   workspace_.Matrix<float>(std::ssize(rest), model_.hidden_size()));
  }

  uint64_t NextToken(TextCache& text) {
    Workspace::Scope scope(workspace_);
    const int32_t token = 1;
    const Segment segment{.tokens = std::span(&token, 1), .text = &text, .phase = Phase::kDecode};
    const auto hidden = workspace_.Matrix<float>(1, model_.hidden_size());
    model_.Forward(exec_, std::span(&segment, 1), hidden);
    const auto logits = workspace_.Matrix<float>(1, model_.vocab_size());
    model_.Logits(exec_, hidden, logits);
    return Fnv1a(std::as_bytes(logits.RowSpan(0)));
  }

  const Decoder& model_;
  const SuiteOptions& options_;
  std::shared_ptr<KvPool> pool_;
  ThreadPool threads_;
  Workspace workspace_;
  Exec exec_;
  std::vector<int32_t> tokens_;
  std::unique_ptr<TextCache> text_, answered_;
  int64_t replayed_tokens_ = 0;
  SnapshotFolder folder_;
};

}  // namespace

std::vector<RestoreResult> MeasureRestore(const Decoder& model, const SuiteOptions& options,
                                          const fs::path& folder,
                                          const std::function<void(int64_t, int64_t)>& on_step) {
  std::set<int64_t> depths;
  for (const TestCase& test : options.cases) {
    depths.insert(WholeTiles(test.depth_tokens));
  }
  depths.erase(0);
  if (depths.empty()) {
    Throw(ErrorKind::kInput, "nothing to save: give -d a text of 64 tokens or more, such as 32768");
  }
  const fs::path own = folder / ("godwit-bench-" + std::to_string(getpid()));
  std::vector<RestoreResult> results;
  const int64_t total = std::ssize(depths) * options.rounds;
  int64_t done = 0;
  try {
    for (const int64_t tokens : depths) {
      results.push_back(Restore(model, options, own, tokens).Run([&] { on_step(++done, total); }));
    }
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(own, ignored);
    throw;
  }
  fs::remove_all(own);
  return results;
}

}  // namespace godwit::bench
