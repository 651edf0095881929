// The sources of guesses that GenerateOptions::draft names.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/stopwatch.h"
#include "generate/draft_source.h"
#include "generate/head_drafts.h"

namespace godwit {

// Loads the draft heads that lie with the model (ModelFolder::draft_heads_file). folder: the
// model's folder or its GGUF file. digest: Decoder::StatesDigest. storage: of the model's layers.
// now_ms: as HeadBatch takes it. Throws Error(kInput) where there are none (kNoDraftHeads), and
// what ReadDraftHeads throws.
std::shared_ptr<HeadBatch> LoadDraftHeads(const std::string& folder, const LanguageModel& model,
                                          uint64_t digest, ThreadPool& pool, DType storage,
                                          NowMs now_ms);

// The parts of which sources are made, each asked for where its source is named.
struct DraftParts {
  int64_t vocab;
  std::function<std::shared_ptr<HeadBatch>()> heads;
  std::function<std::unique_ptr<DraftSource>(std::string_view arguments)> partial;
  std::function<std::unique_ptr<DraftSource>()> mtp;
  std::function<std::unique_ptr<DraftSource>(std::string_view folder)> eagle3;
  std::function<std::unique_ptr<DraftSource>()> model;
  std::function<std::unique_ptr<DraftSource>(std::string_view arguments)> triforce;
};

// Whether "mtp", or a source that needs a draft model, is one of the names that MakeDrafts takes.
bool NamesMtp(std::string_view names);
bool NamesDraftModel(std::string_view names);
// The folder of "eagle3:FOLDER" among them; empty: there is none.
std::string Eagle3FolderIn(std::string_view names);

// names: "ngram", "heads", "mtp", "model"; "ngram-table", "partial" and "triforce" with their
// arguments behind colons (MakePartialDrafts), "eagle3" with a folder behind a colon; several with
// commas between.
// Throws what the parts throw, and Error(kInput) for other names and for one that comes twice.
std::vector<std::unique_ptr<DraftSource>> MakeDrafts(std::string_view names,
                                                     const DraftParts& parts);

}  // namespace godwit
