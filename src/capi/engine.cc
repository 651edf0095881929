#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/objects.h"
#include "capi/options.h"
#include "capi/recommended.h"
#include "godwit/version.h"

using godwit::capi::Guard;
using godwit::capi::Require;

const char* godwit_version(void) { return godwit::Version(); }

godwit_error* godwit_group_new(const godwit_load_options* options, godwit_group** group) {
  return Guard([&] {
    Require(group, "group");
    auto made = std::make_unique<godwit_group>();
    made->group = std::make_shared<const godwit::EngineGroup>(godwit::capi::OptionsOf(options));
    *group = made.release();
  });
}

void godwit_group_free(godwit_group* group) { delete group; }

godwit_error* godwit_group_forget_texts(const godwit_group* group) {
  return Guard([&] { Require(group, "group").group->ForgetTexts(); });
}

godwit_error* godwit_group_get_memory(const godwit_group* group, godwit_group_memory* memory) {
  return Guard([&] {
    const godwit::EngineGroup& engines = *Require(group, "group").group;
    const godwit_group_memory facts{.struct_size = sizeof(facts),
                                    .kv_memory_bytes = engines.kv_memory_bytes(),
                                    .used_kv_bytes = engines.used_kv_bytes(),
                                    .mapped_bytes = engines.mapped_bytes()};
    godwit::capi::WriteFacts(facts, memory, "godwit_group_memory");
  });
}

godwit_error* godwit_engine_load(const char* model, const godwit_load_options* options,
                                 godwit_engine** engine) {
  return Guard([&] {
    Require(engine, "engine");
    auto made = std::make_unique<godwit_engine>();
    made->engine = std::make_shared<const godwit::Engine>(&Require(model, "model"),
                                                          godwit::capi::OptionsOf(options));
    *engine = made.release();
  });
}

void godwit_engine_free(godwit_engine* engine) { delete engine; }

godwit_error* godwit_engine_get_facts(const godwit_engine* handle, godwit_engine_facts* facts) {
  return Guard([&] {
    const godwit::Engine& engine = *Require(handle, "engine").engine;
    const godwit::LoadTimes& times = engine.load_times();
    const godwit_engine_facts all{.struct_size = sizeof(all),
                                  .vocab_size = engine.vocab_size(),
                                  .hidden_size = engine.hidden_size(),
                                  .max_context = engine.max_context(),
                                  .sink_token = engine.sink_token().value_or(-1),
                                  .threads = engine.threads(),
                                  .isa = engine.isa().data(),
                                  .kv_memory_bytes = engine.kv_memory_bytes(),
                                  .weight_bytes = engine.weight_bytes(),
                                  .load_ms = times.total_ms,
                                  .weights_ms = times.weights_ms,
                                  .tokenizer_ms = times.tokenizer_ms,
                                  .end_tokens = engine.end_tokens().data(),
                                  .end_tokens_count = std::ssize(engine.end_tokens())};
    godwit::capi::WriteFacts(all, facts, "godwit_engine_facts");
  });
}

godwit_error* godwit_engine_tokenize(const godwit_engine* engine, const char* text,
                                     size_t text_bytes, bool add_special, int64_t limit_tokens,
                                     godwit_tokens** tokens) {
  return Guard([&] {
    Require(tokens, "tokens");
    *tokens = godwit::capi::NewTokens(
        Require(engine, "engine")
            .engine->Tokenize(godwit::capi::TextOf(text, text_bytes, "text"), add_special,
                              limit_tokens < 0 ? INT64_MAX : limit_tokens));
  });
}

godwit_error* godwit_engine_detokenize(const godwit_engine* engine, const int32_t* ids,
                                       int64_t count, bool skip_special, godwit_text** text) {
  return Guard([&] {
    Require(text, "text");
    *text = godwit::capi::NewText(
        Require(engine, "engine")
            .engine->Detokenize(godwit::capi::SpanOf(ids, count, "ids"), skip_special));
  });
}

godwit_error* godwit_engine_has_chat_template(const godwit_engine* engine, bool* has_template) {
  return Guard([&] {
    Require(has_template, "has_template");
    *has_template = Require(engine, "engine").engine->has_chat_template();
  });
}

godwit_error* godwit_engine_apply_chat_template(const godwit_engine* engine,
                                                const godwit_message* messages, int64_t count,
                                                bool open, const char* variables, const char* tools,
                                                godwit_text** text) {
  return Guard([&] {
    Require(text, "text");
    *text = godwit::capi::NewText(
        Require(engine, "engine")
            .engine->ApplyChatTemplate(godwit::capi::MessagesOf(messages, count), open,
                                       variables == nullptr ? "{}" : variables,
                                       tools == nullptr ? "[]" : tools));
  });
}

godwit_error* godwit_engine_kv_bytes(const godwit_engine* engine, int64_t tokens,
                                     const godwit_session_options* options, int64_t* bytes) {
  return Guard([&] {
    Require(bytes, "bytes");
    *bytes = Require(engine, "engine").engine->KvBytes(tokens, godwit::capi::OptionsOf(options));
  });
}

godwit_error* godwit_engine_recommend_sampler(const godwit_engine* engine,
                                              godwit_sampler_options* options,
                                              godwit_strings** notes) {
  return Guard([&] {
    godwit_sampler_options& given = Require(options, "options");
    godwit::SamplerOptions sampler = godwit::capi::OptionsOf(&given);
    auto said =
        godwit::capi::Recommend(Require(engine, "engine").engine->sampler_defaults(), sampler);
    if (notes != nullptr) *notes = godwit::capi::NewStrings(std::move(said));
    godwit::capi::WriteSampler(sampler, given);
  });
}

godwit_error* godwit_engine_list_saved(const godwit_engine* engine, godwit_saved_texts** texts) {
  return Guard([&] {
    Require(texts, "texts");
    *texts = godwit::capi::NewSavedTexts(Require(engine, "engine").engine->ListSaved());
  });
}

godwit_error* godwit_engine_remove_saved(const godwit_engine* engine, const char* id,
                                         bool* removed) {
  return Guard([&] {
    Require(removed, "removed");
    *removed = Require(engine, "engine").engine->RemoveSaved(&Require(id, "id"));
  });
}

godwit_error* godwit_engine_stop_keeping(const godwit_engine* engine, const char* name,
                                         bool* stopped) {
  return Guard([&] {
    Require(stopped, "stopped");
    *stopped = Require(engine, "engine").engine->StopKeeping(&Require(name, "name"));
  });
}

godwit_error* godwit_engine_follow_rank_zero(const godwit_engine* engine) {
  return Guard([&] { Require(engine, "engine").engine->FollowRankZero(); });
}

godwit_error* godwit_engine_ranks_ended(const godwit_engine* engine, bool* ended) {
  return Guard([&] {
    Require(ended, "ended");
    *ended = Require(engine, "engine").engine->ranks_ended();
  });
}
