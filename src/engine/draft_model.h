// DraftModel: a model beside an engine's own that drafts its tokens (LoadOptions::draft_model). Its
// texts are cached within the same budget, and make way for all others.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/stopwatch.h"
#include "base/thread_pool.h"
#include "checkpoint/model_folder.h"
#include "engine/engine_group.h"
#include "engine/text_plan.h"
#include "generate/draft_source.h"
#include "generate/draft_texts.h"
#include "generate/model_text.h"
#include "godwit/engine.h"
#include "model/decoder.h"
#include "text/tokenizer.h"

namespace godwit {

// Refuses a draft model whose tokens are not those of the model: throws Error(kInput) that names
// both, and the first token that differs. Ids that only one of them has do not matter. names: of
// the models, for people.
void RequireSameTokens(const Tokenizer& model, const std::string& model_name,
                       const Tokenizer& draft, const std::string& draft_name);

// Opens the draft model at `path` for a model with this tokenizer, which people know by a name.
// warn: takes the warnings about the draft model's spec; may be null. Throws as ModelFolder and
// RequireSameTokens do.
ModelFolder OpenDraftModel(const std::string& path, const Tokenizer& model,
                           const std::string& model_name,
                           const std::function<void(const std::string&)>& warn = {});

class DraftModel {
 public:
  // For tests: any model.
  DraftModel(std::shared_ptr<const LanguageModel> model, DecoderSpec spec, WeightTypes types,
             const EngineGroup::Impl& group);

  // Loads the model at options.draft_model, by the same options as the engine's own. Throws as
  // LoadModel does.
  static std::unique_ptr<DraftModel> Load(const ModelFolder& folder, const LoadOptions& options,
                                          EngineGroup::Impl& group);

  // Draft tokens for a text of this plan. A policy that forgets shows the draft model as much as
  // the model; any other shows it all. now_ms: as ModelDrafts takes it.
  std::unique_ptr<DraftSource> NewDrafts(const TextPlan& plan, NowMs now_ms) const;
  // A text of this plan as the draft model reads it, by the KV policy `kv`.
  ModelText::Parts NewText(const TextPlan& plan, const std::string& kv) const;

  // Drops a kept text. False: there was none.
  bool DropText() const { return texts_->Drop(); }

  int64_t weight_bytes() const { return weight_bytes_; }
  int64_t mapped_bytes() const { return mapped_bytes_; }

 private:
  std::shared_ptr<const LanguageModel> model_;
  DecoderSpec spec_;
  WeightTypes types_;
  int64_t weight_bytes_ = 0, mapped_bytes_ = 0;
  std::unique_ptr<const KvPools> pools_;
  std::shared_ptr<DraftTexts> texts_ = std::make_shared<DraftTexts>();
};

}  // namespace godwit
