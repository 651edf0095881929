#include "engine/draft_model.h"

#include <algorithm>
#include <utility>

#include "attention/make_policy.h"
#include "base/error.h"
#include "base/quote.h"
#include "engine/packed_options.h"
#include "engine/policy_options.h"
#include "engine/storage_types.h"
#include "generate/model_drafts.h"
#include "model/spec.h"

namespace godwit {

void RequireSameTokens(const Tokenizer& model, const std::string& model_name,
                       const Tokenizer& draft, const std::string& draft_name) {
  const int32_t both = std::min(model.VocabSize(), draft.VocabSize());
  for (int32_t id = 0; id < both; ++id) {
    const auto expected = model.IdToToken(id), found = draft.IdToToken(id);
    if (!expected || !found || *expected == *found) continue;
    Throw(ErrorKind::kInput,
          "the draft model {} has another tokenizer than {}: token {} is {}, expected {}",
          QuoteUnlessPlain(draft_name), QuoteUnlessPlain(model_name), id, Quote(*found),
          Quote(*expected));
  }
}

ModelFolder OpenDraftModel(const std::string& path, const Tokenizer& model,
                           const std::string& model_name,
                           const std::function<void(const std::string&)>& warn) {
  ModelFolder draft(path);
  for (const std::string& warning : draft.spec().warnings) {
    if (warn) warn(path + ": " + warning);
  }
  RequireSameTokens(model, model_name, *draft.tokenizer(), path);
  return draft;
}

DraftModel::DraftModel(std::shared_ptr<const LanguageModel> model, DecoderSpec spec,
                       WeightTypes types, const EngineGroup::Impl& group)
    : model_(std::move(model)),
      spec_(std::move(spec)),
      types_(types),
      pools_(std::make_unique<const KvPools>(Geometry(spec_), group.budget, group.file)) {}

std::unique_ptr<DraftModel> DraftModel::Load(const ModelFolder& folder, const LoadOptions& options,
                                             EngineGroup::Impl& group) {
  PackedOptions packed = PackedOptionsOf(options);
  packed.file.clear();  // it is the model's own
  auto decoder = LoadModel(
      folder, group.pool,
      {.stage = options.on_stage, .progress = options.on_progress, .warn = options.on_warning},
      ParseWeightType(options.weights), packed);
  const int64_t weight_bytes = decoder->weight_bytes(), mapped_bytes = decoder->mapped_bytes();
  DecoderSpec spec = decoder->spec();
  const WeightTypes types = decoder->weight_types();
  auto draft = std::make_unique<DraftModel>(std::move(decoder), std::move(spec), types, group);
  draft->weight_bytes_ = weight_bytes;
  draft->mapped_bytes_ = mapped_bytes;
  return draft;
}

std::unique_ptr<DraftSource> DraftModel::NewDrafts(const TextPlan& plan, NowMs now_ms) const {
  const bool forgets = plan.limit_tokens() == INT64_MAX;
  return std::make_unique<ModelDrafts>(NewText(plan, forgets ? plan.options().spec : "dense"),
                                       now_ms);
}

ModelText::Parts DraftModel::NewText(const TextPlan& plan, const std::string& kv) const {
  const PolicyOptions& text = plan.options();
  const AttentionGeometry geometry = Geometry(spec_);
  PolicyOptions options{.spec = kv,
                        .kv_type = text.kv_type,
                        .int8_products = text.int8_products,
                        .context = DefaultContext(spec_)};
  if (!CanBeStored(geometry, options.kv_type)) {
    options.kv_type = ChooseKvType("auto", types_);
    options.int8_products = ChooseInt8Attention({}, options.kv_type);
  }
  const std::shared_ptr<KvPool> pool = pools_->Of(options.kv_type);
  (void)MakePolicy(geometry, options);  // refuses what cannot serve the model
  return {.model = model_,
          .new_text = [geometry, options, pool] { return MakeTextCache(geometry, options, pool); },
          .kept = texts_,
          .key = fmt::format("{} {} {} {}", options.spec, Name(options.kv_type),
                             options.int8_products, plan.owner()),
          .chunk_tokens = plan.chunk_tokens()};
}

}  // namespace godwit
