#include "godwit/engine.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/stopwatch.h"
#include "checkpoint/generation_config.h"
#include "checkpoint/model_folder.h"
#include "dist/mpi.h"
#include "dist/placement.h"
#include "engine/draft_shape.h"
#include "engine/engine_impl.h"
#include "engine/generation_impl.h"
#include "engine/make_drafts.h"
#include "engine/make_partial_drafts.h"
#include "engine/model_device.h"
#include "engine/model_fingerprint.h"
#include "engine/packed_options.h"
#include "engine/prompt_share.h"
#include "engine/render_chat.h"
#include "engine/shared_tokens.h"
#include "engine/storage_types.h"
#include "generate/mtp_drafts.h"
#include "godwit/version.h"
#include "model/decoder.h"
#include "model/eagle3_folder.h"

namespace godwit {
namespace {

std::shared_ptr<Communicator> JoinRanks(const LoadOptions& options) {
  constexpr double kMinMs = 1000, kMaxMs = 3'600'000;
  if (!(options.mpi_silence_ms >= kMinMs && options.mpi_silence_ms <= kMaxMs)) {
    Throw(ErrorKind::kInput, "mpi_silence_ms: found {}, expected {:.0f} to {:.0f}",
          options.mpi_silence_ms, kMinMs, kMaxMs);
  }
  if (options.mpi && options.group != nullptr) {
    Throw(
        ErrorKind::kUnsupported,
        "an engine of a group cannot share its texts among ranks: load one model, or run one rank");
  }
  return options.mpi ? JoinMpi(options.mpi_silence_ms / 1000) : nullptr;
}

// Whether int8 layers have inputs whose rows share a scale, so that a token depends on the tokens
// that are read with it.
bool SharesInputScales(const DecoderSpec& spec) {
  const auto layers = spec.quantization.Distinct();
  return std::ranges::any_of(layers, [](const LayerQuantization& layer) {
    return layer.input.kind == InputScale::kPerTensor;
  });
}

// head_folder: of an EAGLE-3 head; empty: there is none.
SnapshotFacts FactsOf(const Engine::Impl& engine, const std::string& head_folder) {
  SnapshotFacts facts{{"godwit", GODWIT_SAME_BITS},
                      {"instructions", std::string(engine.isa.name)},
                      {"weights", std::string(Name(engine.served.types.layers))}};
  if (const auto& ranks = engine.served.placement.all) {
    const auto& tensor = engine.served.placement.tensor;
    facts.emplace_back("rank", fmt::format("{} of {}, {} share weights", ranks->rank() + 1,
                                           ranks->size(), tensor ? tensor->size() : 1));
  }
  if (!engine.device.name.empty()) {
    facts.emplace_back("device",
                       fmt::format("{}, {} layers", engine.device.name, engine.device.layers));
  }
  if (engine.served.spec.predicts) facts.emplace_back("keys of mtp", "saved");
  if (!head_folder.empty()) facts.emplace_back("keys of eagle3", ModelFingerprint(head_folder));
  if (!engine.served.spec.quantization.Distinct().empty()) {
    facts.emplace_back("input scales",
                       SharesInputScales(engine.served.spec) ? "of a step" : "of a token");
  }
  if (engine.folder.empty()) return facts;  // in a test
  facts.emplace_back("model", ModelFingerprint(engine.folder));
  facts.emplace_back("model of", LastChange(engine.folder));
  return facts;
}

std::shared_ptr<ops::Gpu> OpenDeviceOf(const LoadOptions& options) {
  auto gpu = OpenDevice(options.device, options.gpu_memory_bytes);
  if (gpu == nullptr && (options.gpu_attention || options.gpu_window != 0)) {
    Throw(ErrorKind::kInput, "attention on a GPU is set, and the model computes on the CPU alone");
  }
  return gpu;
}

}  // namespace

Engine::Impl::Impl(const std::string& model_folder, const LoadOptions& options,
                   std::shared_ptr<Communicator> all_ranks)
    : folder(model_folder),
      served{.placement = Place(std::move(all_ranks), options.tensor_parallel)},
      isa(kernels::SelectIsa(options.isa)),
      group(EngineGroup::Impl::Of(options)),
      pool(group->pool),
      template_choice_(options.chat_template) {
  const Stopwatch watch;
  const auto begin = [&options](std::string_view stage) {
    if (options.on_stage) options.on_stage(stage);
    return Stopwatch();
  };
  const auto gpu = OpenDeviceOf(options);
  served.gpu_attends = options.gpu_attention;
  served.gpu_window = options.gpu_window;
  const GpuWindow window{.tokens = options.gpu_window, .texts = options.gpu_window_texts};
  ModelFolder opened(folder);
  if (served.placement.all != nullptr) {
    if (gpu != nullptr) {
      Throw(ErrorKind::kUnsupported,
            "a GPU works for one process, and {} ranks share the texts: let them compute on CPUs",
            served.placement.all->size());
    }
    AgreeOnModel(*served.placement.all, folder,
                 {"the tokens of a step and the ranks that share weights",
                  fmt::format("{} and {}", options.step_tokens, options.tensor_parallel)});
  }
  if (options.step_scales) opened.RequestStepScales();
  if (options.mtp) {
    RequireOneRank("mtp");
    opened.RequestPrediction();
  }
  served.spec = opened.spec();
  std::optional<Eagle3Folder> head;
  if (!options.eagle3.empty()) {
    RequireOneRank("eagle3");
    if (options.mtp) {
      Throw(ErrorKind::kUnsupported,
            "the draft sources \"mtp\" and \"eagle3\" cannot be used together: choose one");
    }
    head.emplace(options.eagle3, served.spec);
    eagle3_folder_ = options.eagle3;
  }
  const auto warn = [&](const std::string& warning) {
    if (options.on_warning) options.on_warning(warning);
  };
  for (const std::string& warning : served.spec.warnings) warn(warning);
  // Missing or misnamed parts are found before slow reading: the weights of a folder, or the
  // vocabulary of a GGUF file.
  if (options.needs_text && !opened.is_gguf()) opened.RequireTokenizer();
  (void)opened.tensors();
  if (gpu != nullptr) {
    if (head) {
      Throw(
          ErrorKind::kUnsupported,
          "the draft source \"eagle3\" reads states between layers, which lie on {}: leave one of "
          "them out",
          gpu->name());
    }
    PlanForDevice(opened, ParseWeightType(options.weights), options.step_tokens,
                  options.gpu_attention, window, *gpu);
  }
  sampler_defaults = opened.sampler_defaults();
  if (opened.is_gguf()) template_place = "tokenizer.chat_template in its GGUF file";
  const Stopwatch tokenizer_watch = begin("reading the tokenizer");
  if (options.needs_text) opened.RequireTokenizer();
  named_tokens_ = opened.tokenizer_config().named_tokens;
  special = opened.special_tokens();
  for (const std::string& warning : special.warnings) warn(warning);
  if (opened.has_tokenizer()) tokenizer = opened.tokenizer();
  load_times.tokenizer_ms = tokenizer_watch.ms();
  const std::optional<ModelFolder> draft = OpenDraft(options);
  // The session refuses such an id where it occurs. Most texts have none, unless all have one.
  if (tokenizer != nullptr && tokenizer->VocabSize() > served.spec.vocab_size) {
    for (const int32_t id : tokenizer->Encode("", /*add_special_tokens=*/true)) {
      if (id < served.spec.vocab_size) continue;
      Throw(ErrorKind::kFormat,
            "{}: {} adds token id {} to every text, but the model's vocab_size is {}", folder,
            *opened.tokenizer_file(), id, served.spec.vocab_size);
    }
    warn(
        fmt::format("{} has token ids up to {}, but the model's vocab_size is {}: texts with one "
                    "of the {} higher ids are refused",
                    *opened.tokenizer_file(), tokenizer->VocabSize() - 1, served.spec.vocab_size,
                    tokenizer->VocabSize() - served.spec.vocab_size));
  }
  const Stopwatch weights_watch;
  auto decoder = LoadModel(
      opened, pool,
      {.stage = options.on_stage, .progress = options.on_progress, .warn = options.on_warning},
      ParseWeightType(options.weights), PackedOptionsOf(options), served.placement.tensor);
  if (head) decoder->Take(head->Load(pool, ParseWeightType(options.weights)));
  weight_bytes = decoder->weight_bytes();
  if (gpu != nullptr) {
    begin(fmt::format("copying weights to {}", gpu->name()));
    device = *PlaceOnDevice(*decoder, gpu, options.step_tokens, options.gpu_attention, window);
  }
  auto drafting = draft ? DraftModel::Load(*draft, options, *group) : nullptr;
  load_times.weights_ms = weights_watch.ms();
  served.spreads_kv_heads = served.placement.parts() > served.spec.kv_heads;
  served.spec = decoder->spec();
  served.types = decoder->weight_types();
  const int64_t mapped_bytes = decoder->mapped_bytes() + (drafting ? drafting->mapped_bytes() : 0);
  states_digest_ = decoder->StatesDigest();
  model = std::move(decoder);
  Start(options, mapped_bytes);
  if (drafting) Take(std::move(drafting));
  if (served.placement.all != nullptr) {
    Workspace workspace;
    const Communicator& all = *served.placement.all;
    const auto speeds = MeasureRanks(
        *served.placement.all, {.pool = pool, .kernels = *isa.table, .workspace = workspace},
        served.geometry(), ChooseKvType("auto", served.types), served.pools->bytes());
    served.rank_speeds = SpeedsOfGroups(speeds, served.placement.parts());
    if (all.rank() == 0) std::ranges::for_each(SlowRanks(all, speeds), warn);
  }
  load_times.total_ms = watch.ms();
}

Engine::Impl::Impl(std::unique_ptr<const LanguageModel> language_model, DecoderSpec decoder_spec,
                   std::unique_ptr<const Tokenizer> text_tokenizer, SpecialTokens special_tokens,
                   const LoadOptions& options, NowMs now_ms)
    : served{.spec = std::move(decoder_spec)},
      tokenizer(std::move(text_tokenizer)),
      special(std::move(special_tokens)),
      model(std::move(language_model)),
      isa(kernels::SelectIsa(options.isa)),
      group(EngineGroup::Impl::Of(options)),
      pool(group->pool),
      now_ms_(now_ms) {
  Start(options, /*mapped_bytes=*/0);
}

void Engine::Impl::Take(std::unique_ptr<const DraftModel> draft) {
  draft_model = std::move(draft);
  scheduler->AlsoFrees([model = draft_model.get()] { return model->DropText(); });
}

std::optional<ModelFolder> Engine::Impl::OpenDraft(const LoadOptions& options) const {
  if (options.draft_model.empty()) return std::nullopt;
  RequireOneRank("model");
  std::optional<ModelFolder> draft(
      OpenDraftModel(options.draft_model, RequireTokenizer(), folder, options.on_warning));
  (void)draft->tensors();  // missing ones are found before slow reading
  return draft;
}

void Engine::Impl::Start(const LoadOptions& options, int64_t mapped_bytes) {
  if (options.step_tokens < 1 || options.step_tokens > 1 << 20) {
    Throw(ErrorKind::kInput, "steps of {} tokens, expected 1 to {}", options.step_tokens, 1 << 20);
  }
  CheckPromptSlowdown(options.prompt_slowdown);
  json_grammar_.emplace([path = folder] { return ModelFolder(path).tokenizer_json(); },
                        special.eos_ids);
  mapped_ = group->HoldMapped(mapped_bytes);
  served.pools = std::make_unique<const KvPools>(served.geometry(), group->budget, group->file);
  served.name = std::filesystem::path(folder).filename().string();
  if (!options.cache_dir.empty()) {
    if (options.cache_bytes < 0 || options.cache_every_tokens < 1) {
      Throw(ErrorKind::kInput,
            "texts saved in {} bytes every {} tokens, expected 1 token or more, and 0 bytes for "
            "all free space",
            options.cache_bytes, options.cache_every_tokens);
    }
    served.facts = FactsOf(*this, eagle3_folder_);
    saved = std::make_unique<SavedTexts>(options.cache_dir, options.cache_bytes,
                                         options.cache_every_tokens, options.on_cache_notice);
  }
  const bool leads = served.placement.all != nullptr && served.placement.all->rank() == 0;
  scheduler = std::make_unique<Scheduler>(
      *model, isa, pool, options.step_tokens, options.prompt_slowdown, saved.get(), now_ms_,
      group->turns, leads ? served.placement.all.get() : nullptr);
  if (!group->cpus.empty()) scheduler->PinTo(group->cpus.front());
}

namespace {

// Refuses models whose tokens depend on draft tokens that are read with them.
void RefuseDraftsThatShow(const DecoderSpec& spec) {
  if (!SharesInputScales(spec)) return;
  Throw(ErrorKind::kUnsupported,
        "draft tokens would change the text of this model, because its int8 layers share one "
        "input scale among all tokens of a step: leave draft tokens out, or give each token its "
        "own scale");
}

}  // namespace

std::shared_ptr<Request> Engine::Impl::NewRequest(std::shared_ptr<const TextPlan> plan,
                                                  std::vector<int32_t> prompt,
                                                  const GenerateOptions& options,
                                                  std::shared_ptr<Interrupt> interrupt,
                                                  RequestKind kind) const {
  plan->CheckPrompt(prompt);
  plan = TextPlan::ForPrompt(std::move(plan), std::ssize(prompt), options.query_tokens);
  if (!options.stop.empty()) RequireTokenizer();
  auto drafted = NewSpeculation(options, *plan);  // before the request takes the plan
  auto request = std::make_shared<Request>(
      std::move(plan), std::move(prompt), options, OnlyReads(kind) ? nullptr : tokenizer.get(),
      special.eos_ids, static_cast<int32_t>(served.spec.vocab_size), std::move(interrupt), kind,
      std::move(drafted));
  const bool chooses = served.placement.all == nullptr || served.placement.all->rank() == 0;
  if (chooses && !options.json_schema.empty()) {
    RequireTokenizer();
    request->RestrictTo(json_grammar_->Match(options.json_schema), *tokenizer);
  }
  request->on_unblocked = [this] { scheduler->Wake(); };
  return request;
}

SnapshotFacts Engine::Impl::Facts(const SessionOptions& session) const {
  SnapshotFacts facts = TextPlan(served, session).facts(/*question_begin=*/0);
  {
    const std::lock_guard lock(facts_mutex_);
    if (facts_.empty()) facts_ = FactsOf(*this, eagle3_folder_);
    for (const auto& fact : facts_) {
      if (FactNamed(facts, fact.first).empty()) facts.push_back(fact);
    }
  }
  // Layers that only predict draft tokens change no output, and an owner no bits.
  std::erase_if(facts, [](const auto& fact) {
    return fact.first.starts_with("keys of ") || fact.first == "owner";
  });
  facts.emplace_back("kv", session.kv);
  facts.emplace_back("prefill", session.prefill.empty() ? "none" : session.prefill);
  return facts;
}

std::unique_ptr<Speculative> Engine::Impl::NewSpeculation(const GenerateOptions& options,
                                                          const TextPlan& plan) const {
  if (options.draft.empty()) return nullptr;
  RefuseDraftsThatShow(served.spec);
  const auto partial = [&](std::string_view named) {
    RequireAllWeights("partial");
    return MakePartialDrafts(named, served.geometry(), plan.options(), now_ms_);
  };
  const auto triforce = [&](std::string_view named) {
    RequireAllWeights("triforce");
    const DraftModel& small = RequireDraftModel("triforce");
    return MakeTriForceDrafts(
        named, served.geometry(), plan.options(),
        [&](const std::string& kv) { return small.NewText(plan, kv); }, now_ms_);
  };
  auto sources =
      MakeDrafts(options.draft,
                 {.vocab = served.spec.vocab_size,
                  .heads = [this] { return Heads(); },
                  .partial = partial,
                  .mtp = [this] { return Predictions(); },
                  .eagle3 = [this](std::string_view head_folder) { return Eagle3(head_folder); },
                  .model = [&] { return RequireDraftModel("model").NewDrafts(plan, now_ms_); },
                  .triforce = triforce});
  return std::make_unique<Speculative>(std::move(sources), now_ms_,
                                       ParseDraftShape(options.draft_tree));
}

void Engine::Impl::RequireAllWeights(std::string_view draft) const {
  if (served.placement.tensor == nullptr) return;
  Throw(
      ErrorKind::kUnsupported,
      "the draft source \"{}\" needs the whole model on one rank, and {} ranks share its weights: "
      "leave it out, or let one rank have them",
      draft, served.placement.parts());
}

std::unique_ptr<DraftSource> Engine::Impl::Predictions() const {
  if (served.spec.predicts) return std::make_unique<MtpDrafts>(now_ms_);
  DecoderSpec spec = served.spec;
  RequestPrediction(spec);
  ThrowWith({.code = ErrorCode::kNoPrediction}, ErrorKind::kInput,
            "the draft source \"mtp\" needs the layer that predicts tokens, which was not loaded "
            "with the model");
}

std::unique_ptr<DraftSource> Engine::Impl::Eagle3(std::string_view head_folder) const {
  if (!served.spec.eagle3) {
    ThrowWith({.code = ErrorCode::kNoEagle3}, ErrorKind::kInput,
              "the draft source \"eagle3\" needs an EAGLE-3 head, and none was loaded with the "
              "model");
  }
  // A request names no folder of its own, or it could ask what there is on this machine.
  if (!head_folder.empty() && head_folder != eagle3_folder_) {
    Throw(ErrorKind::kInput,
          "the draft source \"eagle3\" names another folder than that of the head which was loaded "
          "with the model: say \"eagle3\" alone");
  }
  return std::make_unique<MtpDrafts>(now_ms_, "eagle3");
}

const DraftModel& Engine::Impl::RequireDraftModel(std::string_view draft) const {
  if (draft_model == nullptr) {
    ThrowWith({.code = ErrorCode::kNoDraftModel}, ErrorKind::kInput,
              "the draft source \"{}\" needs a draft model, and none was loaded beside the "
              "model",
              draft);
  }
  return *draft_model;
}

void Engine::Impl::RequireOneRank(std::string_view draft) const {
  if (served.placement.all == nullptr) return;
  Throw(ErrorKind::kUnsupported,
        "the draft source \"{}\" needs the whole model and the whole text on one rank, and there "
        "are {} ranks: leave it out, or run one rank",
        draft, served.placement.all->size());
}

std::shared_ptr<HeadBatch> Engine::Impl::Heads() const {
  const std::lock_guard lock(heads_mutex_);
  if (heads_ != nullptr) return heads_;
  RequireAllWeights("heads");
  heads_ = LoadDraftHeads(folder, *model, states_digest_, pool, served.types.layers, now_ms_);
  return heads_;
}

const Tokenizer& Engine::Impl::RequireTokenizer() const {
  if (tokenizer == nullptr) {
    Throw(ErrorKind::kUnsupported, "{} has no tokenizer, so it takes token ids only", folder);
  }
  return *tokenizer;
}

SavedTexts& Engine::Impl::RequireSavedTexts() const {
  if (saved == nullptr)
    Throw(ErrorKind::kUnsupported, "no folder of saved texts is set (LoadOptions::cache_dir)");
  return *saved;
}

const ChatTemplate* Engine::Impl::FindChatTemplate() const {
  const std::lock_guard lock(template_mutex_);
  if (!template_found_) {
    chat_template_ =
        LoadChatTemplate(ModelFolder(folder).chat_template(template_choice_), named_tokens_);
    template_found_ = true;
  }
  return chat_template_ ? &*chat_template_ : nullptr;
}

Engine::Engine(const std::string& folder, const LoadOptions& options)
    : impl_([&] {
        const auto ranks = JoinRanks(options);
        return LeaveOnError(ranks.get(),
                            [&] { return std::make_shared<Impl>(folder, options, ranks); });
      }()) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

Session Engine::NewSession(const SessionOptions& options) const {
  return Session(std::make_unique<Session::Impl>(impl_, options));
}

Generation Engine::Submit(std::span<const int32_t> prompt, const GenerateOptions& options,
                          const SessionOptions& session) const {
  if (options.on_text || options.on_progress || options.on_event) {
    Throw(ErrorKind::kInput,
          "a submitted request has events, no callbacks: leave on_text, on_progress and on_event "
          "out");
  }
  return SubmitTo(impl_, prompt, options, session);
}

RequestPrice Engine::PriceOf(std::span<const int32_t> prompt, const PassagePlaces& passages,
                             const GenerateOptions& options, const SessionOptions& session) const {
  return impl_->PriceOf(prompt, passages, options, session);
}

RequestPrice Engine::PriceOf(std::span<const int32_t> prompt, const GenerateOptions& options,
                             const SessionOptions& session) const {
  return impl_->PriceOf(prompt, options, session);
}

PrefixReport Engine::ExplainPrefix(std::span<const int32_t> prompt, const GenerateOptions& options,
                                   const SessionOptions& session) const {
  return impl_->ExplainPrefix(prompt, options, session);
}

std::vector<SavedText> Engine::ListSaved() const {
  std::vector<SavedText> texts;
  if (impl_->saved == nullptr) return texts;
  for (auto& entry : impl_->saved->folder().Entries()) {
    if (!entry.reachable) continue;
    texts.push_back({.id = entry.name,
                     .tokens = entry.info->end(),
                     .bytes = entry.bytes,
                     .model = entry.info->label,
                     .names = std::move(entry.pins)});
  }
  return texts;
}

bool Engine::RemoveSaved(const std::string& id) const {
  return impl_->saved != nullptr && impl_->saved->folder().Remove(id) > 0;
}

bool Engine::StopKeeping(const std::string& name) const {
  impl_->scheduler->StopKeeping(name);
  return impl_->saved != nullptr && impl_->saved->folder().Unpin(name);
}

void Engine::FollowRankZero() const { impl_->FollowRankZero(); }
bool Engine::ranks_ended() const {
  return impl_->served.placement.all != nullptr && impl_->served.placement.all->left();
}

std::vector<int32_t> Engine::Tokenize(std::string_view text, bool add_special,
                                      int64_t limit_tokens) const {
  return impl_->RequireTokenizer().Encode(text, add_special, limit_tokens);
}

std::string Engine::Detokenize(std::span<const int32_t> tokens, bool skip_special) const {
  return impl_->RequireTokenizer().Decode(tokens, skip_special);
}

std::string_view Engine::chat_template() const {
  const ChatTemplate* const chat_template = impl_->FindChatTemplate();
  return chat_template == nullptr ? std::string_view() : chat_template->source();
}

bool Engine::has_chat_template() const { return impl_->FindChatTemplate() != nullptr; }

std::string Engine::ApplyChatTemplate(std::span<const Message> messages, bool open,
                                      std::string_view variables, std::string_view tools) const {
  const ChatTemplate* const chat_template = impl_->FindChatTemplate();
  if (chat_template == nullptr) {
    Throw(ErrorKind::kUnsupported,
          "the model has no chat template ({}): give it a raw prompt instead",
          impl_->template_place);
  }
  ChatInput input{.add_generation_prompt = open, .extra = ParseTemplateVariables(variables)};
  if (auto list = ParseOrderedJson(tools, "the tools"); !list.empty()) {
    if (!chat_template->knows_tools()) {
      Throw(ErrorKind::kUnsupported, "this model's chat template does not support tools");
    }
    input.tools = std::move(list);
  }
  return RenderChat(*chat_template, messages, std::move(input));
}

std::vector<std::pair<std::string, std::string>> Engine::Facts(
    const SessionOptions& session) const {
  return impl_->Facts(session);
}

int64_t Engine::vocab_size() const { return impl_->served.spec.vocab_size; }
int64_t Engine::hidden_size() const { return impl_->model->hidden_size(); }
int64_t Engine::max_context() const { return impl_->served.spec.max_context; }
const SamplerDefaults& Engine::sampler_defaults() const { return impl_->sampler_defaults; }
std::span<const int32_t> Engine::end_tokens() const { return impl_->special.eos_ids; }
std::optional<int32_t> Engine::sink_token() const { return impl_->served.spec.sink_token; }
int64_t Engine::kv_memory_bytes() const { return impl_->served.pools->bytes(); }
int64_t Engine::KvBytes(int64_t tokens, const SessionOptions& session) const {
  return TextPlan(impl_->served, session).KvBytes(tokens);
}
int64_t Engine::weight_bytes() const { return impl_->weight_bytes; }
const LoadTimes& Engine::load_times() const { return impl_->load_times; }
int Engine::threads() const { return impl_->pool.threads(); }
std::string_view Engine::isa() const { return impl_->isa.name; }
const DeviceUse& Engine::device() const { return impl_->device; }

}  // namespace godwit
