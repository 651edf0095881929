#include "engine/text_plan.h"

#include <algorithm>

#include "attention/core/kv_cost.h"
#include "attention/policies/prefill_spec.h"
#include "attention/ranks/choose_prefill.h"
#include "base/checksum.h"
#include "base/error.h"
#include "engine/memory_plan.h"
#include "ops/kv_layout.h"

namespace godwit {
TextPlan::TextPlan(const ServedModel& model, const SessionOptions& options)
    : model_(model),
      options_(model.OptionsOf(options)),
      chunk_tokens_(options.chunk_tokens),
      owner_(options.owner) {
  if (chunk_tokens_ < 1 || chunk_tokens_ > 1 << 20) {
    Throw(ErrorKind::kInput, "prompt chunks of {} tokens: expected 1 to {}", chunk_tokens_,
          1 << 20);
  }
  if (options_.prefill == kGpuPrefill && !model.gpu_attends) {
    Throw(ErrorKind::kUnsupported,
          "prefill {} needs a model that was loaded with attention on a GPU, and this one was not",
          kGpuPrefill);
  }
  if (options_.gpu_window != 0) RequireGpuWindow();
  MakePolicy();
  RefuseChoicesOfOthers();
  pool_ = model.pools->Of(options_.kv_type);
  // A text without an end reaches its full size sooner or later.
  if (policy_->facts().endless()) {
    CheckFits(INT64_MAX);
  }
}

void TextPlan::RequireGpuWindow() const {
  if (model_.gpu_window == 0) {
    Throw(ErrorKind::kUnsupported,
          "a GPU window needs a model that was loaded with one, and this one was not");
  }
  const int64_t tokens =
      options_.kv_type == DType::kF32 ? model_.gpu_window / 2 : model_.gpu_window;
  if (options_.gpu_window <= tokens) return;
  Throw(ErrorKind::kMemory,
        "a GPU window of {} tokens: the model was loaded with one of {}, which has keys and values "
        "of {} tokens in {}",
        options_.gpu_window, model_.gpu_window, tokens, KvTypeName(options_.kv_type));
}

void TextPlan::MakePolicy() {
  auto [policy, placement] = MakePlacedPolicy(model_.geometry(), options_);
  policy_ = std::move(policy);
  placement_ = std::move(placement);
}

void TextPlan::RefuseChoicesOfOthers() const {
  const PolicyFacts& facts = policy_->facts();
  if (model_.placement.tensor == nullptr || facts.chosen_tokens == 1) return;
  if (!facts.one_choice && !model_.spreads_kv_heads) return;
  Throw(ErrorKind::kUnsupported,
        "{} chooses keys by the queries of several heads, and {} ranks that share the weights have "
        "them: let fewer ranks share the weights{}, or use dense",
        facts.name, model_.placement.parts(), facts.one_choice ? ", or choose for each head" : "");
}

std::shared_ptr<const TextPlan> TextPlan::ForPrompt(std::shared_ptr<const TextPlan> plan,
                                                    int64_t tokens, int64_t query_tokens) {
  const std::string& prefill = plan->options_.prefill;
  const int64_t context = std::max<int64_t>(0, tokens - query_tokens);
  if (prefill != kAutoPrefill) {
    if (prefill.empty() || !ParsePrefill(prefill).quarter) return plan;
    return ReadBy(plan, ParsePrefill(prefill).For(context).ToString());
  }
  if (plan->ranks() == nullptr) return plan;
  return ReadBy(plan, ChoosePrefill(plan->model_.geometry(), plan->options_, plan->policy_->facts(),
                                    context));
}

std::shared_ptr<const TextPlan> TextPlan::ReadBy(std::shared_ptr<const TextPlan> plan,
                                                 const std::string& prefill) {
  if (plan->options_.prefill == prefill) return plan;
  auto chosen = std::make_shared<TextPlan>(*plan);
  chosen->options_.prefill = prefill;
  chosen->MakePolicy();
  return chosen;
}

std::unique_ptr<TextCache> TextPlan::NewText() const {
  return MakeTextCache(model_.geometry(), options_, pool_);
}

std::unique_ptr<AttentionPolicy> TextPlan::AskedPolicy(int64_t tokens,
                                                       int64_t question_begin) const {
  auto policy = policy_->Fork();
  policy->SetQuestion({.begin = question_begin, .answer = tokens});
  return policy;
}

std::vector<StepWork> TextPlan::ReadingWork(int64_t from, int64_t tokens, int64_t question_begin,
                                            int64_t chunk_tokens) const {
  const auto policy = AskedPolicy(tokens, question_begin);
  const AttentionGeometry geometry = model_.geometry();
  std::vector<StepWork> steps;
  while (from < tokens) {
    const int64_t rows = std::min(chunk_tokens, tokens - from);
    steps.push_back(WorkOf(*policy, geometry, pool_->layout(), from, rows, question_begin));
    from += rows;
  }
  return steps;
}

StepWork TextPlan::AnswerWork(int64_t tokens, int64_t question_begin) const {
  const auto policy = AskedPolicy(tokens, question_begin);
  return WorkOf(*policy, model_.geometry(), pool_->layout(), tokens, /*rows=*/1, question_begin);
}

std::vector<int32_t> TextPlan::WithSink(std::span<const int32_t> tokens) const {
  const std::optional<int32_t> sink = model_.spec.sink_token;
  const bool add = sink && !tokens.empty() && tokens.front() != *sink;
  std::vector<int32_t> text;
  text.reserve(tokens.size() + 1);
  if (add) text.push_back(*sink);
  text.insert(text.end(), tokens.begin(), tokens.end());
  return text;
}

void TextPlan::RefuseLength(const std::string& tokens, std::optional<int64_t> count) const {
  const int64_t most = model_.spec.max_context;
  ThrowWith({.code = ErrorCode::kPromptTooLong,
             .found = count.value_or(most + 1),
             .limit = std::min(limit_tokens(), most),
             .fits = most,
             .learned_positions = model_.geometry().learned_positions,
             .ranks = ranks() == nullptr ? 1 : ranks()->size()},
            ErrorKind::kInput,
            "the prompt has {} and the context holds {} (the model was made for up to {})", tokens,
            limit_tokens(), most);
}

void TextPlan::CheckPrompt(std::span<const int32_t> prompt) const {
  const auto n = static_cast<int64_t>(prompt.size());
  if (n == 0) Throw(ErrorKind::kInput, "the prompt is empty: there is nothing to continue");
  RequireTokenIds(model_.spec, prompt);
  if (n > limit_tokens()) RefuseLength(fmt::format("{} tokens", n), n);
  if (all_ranks() != nullptr) return;
  try {
    CheckFits(n);
  } catch (const Error& error) {
    if (TokensAtOnce(n) < n) throw;
    // For a text that never fits, coming back later is no help, but a shorter text is.
    const int64_t most = LargestContext(pool_->layout(), policy_.get(), pool_->budget().bytes());
    // A step takes pages before it gives others back, and those in whole tiles.
    const int64_t in_step = TextCache::kMaxRollbackTokens + chunk_tokens_ + 2 * kTileTokens;
    const ErrorData data{.code = ErrorCode::kPromptTooLong,
                         .found = n,
                         .limit = most,
                         .learned_positions = model_.geometry().learned_positions,
                         .streams = most - in_step,
                         .narrower = NarrowerTypeFor(n)};
    throw Error(error.kind(), error.what(), data);
  }
}

void TextPlan::CheckFits(int64_t tokens) const {
  const int64_t at_once = TokensAtOnce(tokens), budget_bytes = pool_->budget().bytes();
  if (pool_->file() == nullptr) {
    return CheckKvFits(pool_->layout(), policy_.get(), at_once, budget_bytes);
  }
  CheckKvFits(pool_->layout(), nullptr, at_once, budget_bytes);
  CheckIndexFits(pool_->in_memory()->layout(), *policy_, at_once, pool_->file()->memory()->bytes());
}

const char* TextPlan::NarrowerTypeFor(int64_t tokens) const {
  if (pool_->file() != nullptr) return "";
  for (const KvType& type : kKvTypes) {
    try {
      PolicyOptions options = options_;
      options.kv_type = type.dtype;
      const KvLayout layout = LayoutOf(model_.geometry(), type.dtype);
      if (layout.page_bytes() >= pool_->layout().page_bytes()) continue;
      const auto placed = MakePlacedPolicy(model_.geometry(), options);
      CheckKvFits(layout, placed.policy.get(), tokens, pool_->budget().bytes());
      return type.name.data();
    } catch (const Error&) {
      continue;  // the model or the policy does not work with it, or it does not fit either
    }
  }
  return "";
}

bool TextPlan::SharesWith(const TextPlan& other) const {
  return options_.spec == other.options_.spec && owner_ == other.owner_ &&
         options_.prefill == other.options_.prefill && options_.context == other.options_.context &&
         options_.int8_products == other.options_.int8_products &&
         options_.gpu_window == other.options_.gpu_window && pool_ == other.pool_;
}

bool TextPlan::ReadsAs(const TextPlan& other) const {
  return owner_ == other.owner_ && policy_->facts().reading == other.policy_->facts().reading &&
         policy_->facts().keys_suffice && ranks() == nullptr && other.ranks() == nullptr &&
         options_.context == other.options_.context &&
         options_.int8_products == other.options_.int8_products && pool_ == other.pool_;
}

int64_t TextPlan::QuestionBegin(int64_t tokens, int64_t query_tokens) const {
  return policy_->facts().separates_question ? std::max<int64_t>(0, tokens - query_tokens) : 0;
}

int64_t TextPlan::ReusableTokens(int64_t question_begin, int64_t other) const {
  if (question_begin == other) return INT64_MAX;
  if (ranks() != nullptr) return 0;  // other ranks would keep other parts
  return std::max<int64_t>(
      0, std::min(question_begin, other) - policy_->facts().question_dependent_tokens);
}

int64_t TextPlan::QuestionIndependentTokens(int64_t question_begin) const {
  if (!policy_->facts().separates_question) return INT64_MAX;
  return std::max<int64_t>(0, question_begin - policy_->facts().question_dependent_tokens);
}

SnapshotFacts TextPlan::facts(int64_t question_begin) const {
  SnapshotFacts facts = model_.facts;
  facts.emplace_back("read by", policy_->facts().reading);
  const KvLayout& layout = pool_->layout();
  const char* const how = layout.centred      ? " (rotated, centred)"
                          : layout.hadamard() ? " (rotated)"
                                              : "";
  facts.emplace_back("kv type", fmt::format("{}{}", Name(options_.kv_type), how));
  if (layout.values_in_keys) facts.emplace_back("values", "in keys");
  if (placement_.ranks() > 1) {
    TextPlacement placement = placement_;
    placement.SetQuestion(question_begin);
    facts.emplace_back("part", placement.ToString());
  }
  if (options_.int8_products) facts.emplace_back("attention", "int8");
  if (model_.geometry().RotatesByContext()) {
    facts.emplace_back("context", fmt::format("{}", options_.context));
  }
  if (!owner_.empty()) {
    facts.emplace_back("owner", ContentName({std::as_bytes(std::span(owner_))}));
  }
  return facts;
}

int64_t TextPlan::TokensAtOnce(int64_t tokens) const {
  // A text that forgets keeps what it sees. A step takes pages before it gives others back.
  if (!policy_->facts().endless()) return tokens;
  return std::min(tokens,
                  policy_->facts().max_kept_tokens + TextCache::kMaxRollbackTokens + chunk_tokens_);
}

int64_t TextPlan::ShardBytes(int64_t tokens, int64_t query_tokens) const {
  if (policy_->facts().endless()) return KvBytes(tokens);  // one rank has all that is kept
  const auto policy = policy_->Fork();
  TextPlacement placement = placement_;
  const int64_t begin = QuestionBegin(tokens, query_tokens);
  placement.SetQuestion(begin);
  policy->SetQuestion({.begin = begin, .answer = tokens, .choosable = placement.choosable()});
  return HeldBytes(*policy, placement, pool_->layout(), tokens);
}

int64_t TextPlan::KvBytes(int64_t tokens) const {
  return godwit::KvBytes(pool_->layout(), policy_.get(),
                         TokensAtOnce(std::min(tokens, limit_tokens())));
}

}  // namespace godwit
