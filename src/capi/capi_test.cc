#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/test_folder.h"
#include "capi/guard.h"
#include "godwit/engine.h"
#include "godwit/godwit.h"
#include "godwit/version.h"

namespace godwit::capi::capi_test {
namespace {

using Json = nlohmann::ordered_json;
using Tokens = std::vector<int32_t>;

const std::string kTiny = GODWIT_SOURCE_DIR "/tests/data/tiny-llama";
const std::string kStories = GODWIT_SOURCE_DIR "/models/stories-3m";

// Owners of what the library hands out.
template <typename T, void (*kFree)(T*)>
struct Freer {
  void operator()(T* object) const { kFree(object); }
};
template <typename T, void (*kFree)(T*)>
using Own = std::unique_ptr<T, Freer<T, kFree>>;
using OwnError = Own<godwit_error, godwit_error_free>;
using OwnEngine = Own<godwit_engine, godwit_engine_free>;
using OwnSession = Own<godwit_session, godwit_session_free>;
using OwnResult = Own<godwit_result, godwit_result_free>;
using OwnText = Own<godwit_text, godwit_text_free>;
using OwnTokens = Own<godwit_tokens, godwit_tokens_free>;

void ExpectNone(godwit_error* error) {
  const OwnError own(error);
  EXPECT_EQ(error, nullptr) << error->message;
}

// Expects an error of that kind. Returns its message.
std::string MessageOf(godwit_error* error, int32_t kind) {
  const OwnError own(error);
  if (error == nullptr) {
    ADD_FAILURE() << "no error";
    return "";
  }
  EXPECT_EQ(error->kind, kind) << error->message;
  EXPECT_EQ(error->struct_size, sizeof(godwit_error));
  return error->message;
}

OwnEngine Load(const std::string& model, const godwit_load_options* options = nullptr) {
  godwit_engine* engine = nullptr;
  ExpectNone(godwit_engine_load(model.c_str(), options, &engine));
  return OwnEngine(engine);
}

OwnSession NewSession(const OwnEngine& engine, const godwit_session_options* options = nullptr) {
  godwit_session* session = nullptr;
  ExpectNone(godwit_session_new(engine.get(), options, &session));
  return OwnSession(session);
}

Tokens Tokenize(const OwnEngine& engine, const std::string& text) {
  godwit_tokens* tokens = nullptr;
  ExpectNone(godwit_engine_tokenize(engine.get(), text.data(), text.size(), true, -1, &tokens));
  const OwnTokens own(tokens);
  return {tokens->ids, tokens->ids + tokens->count};
}

// Greedy options of so many tokens. The sampler lives as long as the object.
struct Greedy {
  explicit Greedy(int64_t max_tokens) {
    godwit_sampler_options_init(&sampler, sizeof(sampler));
    sampler.temperature = 0;
    godwit_generate_options_init(&options, sizeof(options));
    options.max_tokens = max_tokens;
    options.sampler = &sampler;
    options.ignore_eos = true;
  }
  Greedy(const Greedy&) = delete;
  Greedy& operator=(const Greedy&) = delete;
  godwit_sampler_options sampler;
  godwit_generate_options options;
};

OwnResult Generate(const OwnSession& session, const Tokens& prompt,
                   const godwit_generate_options& options) {
  godwit_result* result = nullptr;
  ExpectNone(
      godwit_session_generate(session.get(), prompt.data(), std::ssize(prompt), &options, &result));
  return OwnResult(result);
}

Tokens TokensOf(const godwit_result& result) {
  return {result.tokens, result.tokens + result.tokens_count};
}

GenerateOptions GreedyCpp(int64_t max_tokens) {
  GenerateOptions options{.max_tokens = max_tokens};
  options.sampler.temperature = 0;
  options.ignore_eos = true;
  return options;
}

class Capi : public testing::Test {
 protected:
  static void SetUpTestSuite() { engine_ = new OwnEngine(Load(kTiny)); }
  static void TearDownTestSuite() { delete engine_; }
  const OwnEngine& engine() const { return *engine_; }

 private:
  static inline OwnEngine* engine_ = nullptr;
};

TEST_F(Capi, TellsItsVersion) { EXPECT_STREQ(godwit_version(), GODWIT_VERSION); }

TEST_F(Capi, GeneratesTheTextOfCpp) {
  const Engine cpp(kTiny, {});
  const Tokens prompt = cpp.Tokenize("Once upon a time");
  EXPECT_EQ(Tokenize(engine(), "Once upon a time"), prompt);
  Session cpp_session = cpp.NewSession({.kv = "sinks:4+60"});
  GenerateOptions cpp_options = GreedyCpp(40);
  cpp_options.top_logprobs = 2;
  const GenerateResult expected = cpp_session.Generate(prompt, cpp_options);

  godwit_session_options keep;
  godwit_session_options_init(&keep, sizeof(keep));
  keep.kv = "sinks:4+60";
  const OwnSession session = NewSession(engine(), &keep);
  Greedy greedy(40);
  greedy.options.top_logprobs = 2;
  std::string streamed;
  greedy.options.user_data = &streamed;
  greedy.options.on_event = [](void* user_data, const godwit_event* event) {
    static_cast<std::string*>(user_data)->append(event->text, event->text_bytes);
    return true;
  };
  const OwnResult result = Generate(session, prompt, greedy.options);
  EXPECT_EQ(TokensOf(*result), expected.tokens);
  EXPECT_EQ(result->text, expected.text);
  EXPECT_EQ(streamed, expected.text);
  EXPECT_EQ(result->finish_reason, GODWIT_FINISH_LENGTH);
  EXPECT_EQ(result->prompt_tokens, expected.prompt_tokens);
  EXPECT_STREQ(result->kv->policy, "sinks:4+60");
  EXPECT_EQ(result->kv->kept, expected.kv.kept);
  ASSERT_EQ(result->kv->dropped_count, std::ssize(expected.kv.dropped));
  for (size_t i = 0; i < expected.tokens.size(); ++i) {
    const godwit_token_logprobs& found = result->logprobs[i];
    EXPECT_EQ(found.logprob, expected.logprobs[i].logprob);
    ASSERT_EQ(found.top_count, 2);
    for (size_t k = 0; k < 2; ++k) {
      EXPECT_EQ(found.top[k].token, expected.logprobs[i].top[k].token);
      EXPECT_EQ(found.top[k].logprob, expected.logprobs[i].top[k].logprob);
    }
  }
}

TEST_F(Capi, AGpuKeepsAWindow) {
  godwit_load_options load;
  godwit_load_options_init(&load, sizeof(load));
  EXPECT_EQ(load.gpu_window_texts, 1);
  load.device = "emulated";
  load.weights = "bf16";
  load.gpu_window = 128;
  const OwnEngine there = Load(kTiny, &load);
  godwit_session_options options;
  godwit_session_options_init(&options, sizeof(options));
  options.gpu_window = 128;
  Greedy greedy(4);
  const OwnResult result = Generate(NewSession(there, &options), Tokens(100, 5), greedy.options);
  EXPECT_STREQ(result->kv->policy, "dense, 128 tokens on a GPU");
  options.gpu_window = 192;
  godwit_session* session = nullptr;
  EXPECT_EQ(MessageOf(godwit_session_new(there.get(), &options, &session), GODWIT_ERROR_MEMORY),
            "a GPU window of 192 tokens: the model was loaded with one of 128, which has keys and "
            "values of 128 tokens in bf16");
}

TEST_F(Capi, ErrorsHaveNumbers) {
  godwit_session_options options;
  godwit_session_options_init(&options, sizeof(options));
  options.context_tokens = 8;
  const OwnSession session = NewSession(engine(), &options);
  const Tokens prompt(20, 5);
  godwit_result* result = nullptr;
  const OwnError error(godwit_session_generate(session.get(), prompt.data(), 20, nullptr, &result));
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(result, nullptr);
  EXPECT_EQ(error->kind, GODWIT_ERROR_INPUT);
  EXPECT_EQ(error->code, GODWIT_CODE_PROMPT_TOO_LONG);
  EXPECT_EQ(error->found, 20);
  EXPECT_EQ(error->limit, 8);
  EXPECT_STREQ(error->unit, "tokens");
}

TEST_F(Capi, MissingModelsAndArgumentsAreErrors) {
  godwit_engine* engine_out = nullptr;
  EXPECT_NE(MessageOf(godwit_engine_load("/nowhere/model", nullptr, &engine_out), GODWIT_ERROR_IO)
                .find("/nowhere/model"),
            std::string::npos);
  EXPECT_EQ(engine_out, nullptr);
  EXPECT_EQ(MessageOf(godwit_engine_load(nullptr, nullptr, &engine_out), GODWIT_ERROR_INPUT),
            "model: expected an object, found NULL");
  EXPECT_EQ(MessageOf(godwit_engine_load(kTiny.c_str(), nullptr, nullptr), GODWIT_ERROR_INPUT),
            "engine: expected an object, found NULL");
  godwit_tokens* tokens = nullptr;
  EXPECT_EQ(MessageOf(godwit_engine_tokenize(engine().get(), nullptr, 3, true, -1, &tokens),
                      GODWIT_ERROR_INPUT),
            "text: expected a text of 3 bytes, found NULL");
  godwit_text* text = nullptr;
  EXPECT_EQ(MessageOf(godwit_engine_detokenize(engine().get(), nullptr, 2, true, &text),
                      GODWIT_ERROR_INPUT),
            "ids: expected an array of 2, found NULL");
  const int32_t id = 5;
  MessageOf(godwit_engine_detokenize(engine().get(), &id, -1, true, &text), GODWIT_ERROR_INPUT);
}

TEST_F(Capi, AnythingThatIsThrownBecomesAnError) {
  EXPECT_EQ(MessageOf(Guard([] { throw std::runtime_error("broken"); }), GODWIT_ERROR_INTERNAL),
            "broken");
  EXPECT_EQ(MessageOf(Guard([] { throw std::bad_alloc(); }), GODWIT_ERROR_MEMORY), "out of memory");
  MessageOf(Guard([] { throw 1; }), GODWIT_ERROR_INTERNAL);
}

// A struct of a newer header: one member more.
struct NewerSessionOptions {
  godwit_session_options known;
  int64_t later;
};

TEST_F(Capi, StructsOfOtherVersionsAreRead) {
  // An older program knows no more than `kv`.
  godwit_session_options older{};
  older.struct_size = offsetof(godwit_session_options, prefill);
  older.kv = "sinks:4+60";
  older.kv_type = "no type";  // beyond its end
  EXPECT_NE(NewSession(engine(), &older), nullptr);

  NewerSessionOptions newer;
  godwit_session_options_init(&newer.known, sizeof(newer));
  EXPECT_EQ(newer.known.struct_size, sizeof(newer));
  EXPECT_EQ(newer.known.chunk_tokens, 512);
  EXPECT_EQ(newer.later, 0);
  EXPECT_NE(NewSession(engine(), &newer.known), nullptr);
  newer.later = 1;
  godwit_session* session = nullptr;
  EXPECT_NE(MessageOf(godwit_session_new(engine().get(), &newer.known, &session),
                      GODWIT_ERROR_UNSUPPORTED)
                .find("godwit_session_options"),
            std::string::npos);
  older.struct_size = 0;
  MessageOf(godwit_session_new(engine().get(), &older, &session), GODWIT_ERROR_INPUT);

  // Facts are written as far as the caller's struct goes.
  godwit_engine_facts facts;
  std::memset(&facts, 0x55, sizeof(facts));
  facts.struct_size = offsetof(godwit_engine_facts, hidden_size);
  ExpectNone(godwit_engine_get_facts(engine().get(), &facts));
  EXPECT_GT(facts.vocab_size, 0);
  EXPECT_EQ(facts.hidden_size, 0x5555555555555555);
}

TEST_F(Capi, ListenersCancel) {
  const OwnSession session = NewSession(engine());
  Greedy greedy(200);
  greedy.options.on_event = [](void*, const godwit_event* event) {
    return event->tokens_count == 0;
  };
  const OwnResult result = Generate(session, Tokenize(engine(), "Once"), greedy.options);
  EXPECT_EQ(result->finish_reason, GODWIT_FINISH_CANCELLED);
  EXPECT_LT(result->tokens_count, 200);
}

TEST_F(Capi, LoadsAreCancelledByTheirProgress) {
  godwit_load_options options;
  godwit_load_options_init(&options, sizeof(options));
  options.packed = "none";
  std::string stages;
  options.user_data = &stages;
  options.on_stage = [](void* user_data, const char* stage) {
    static_cast<std::string*>(user_data)->append(stage).append(";");
  };
  options.on_progress = [](void*, int64_t done, int64_t total) { return done > total; };
  godwit_engine* loaded = nullptr;
  MessageOf(godwit_engine_load(kTiny.c_str(), &options, &loaded), GODWIT_ERROR_CANCELLED);
  EXPECT_EQ(loaded, nullptr);
  EXPECT_NE(stages.find("reading the tokenizer;"), std::string::npos);
}

TEST_F(Capi, ForksGoOnFromTheSameText) {
  const OwnSession session = NewSession(engine());
  const Tokens prompt = Tokenize(engine(), "Once upon a time");
  Greedy greedy(8);
  const OwnResult first = Generate(session, prompt, greedy.options);
  godwit_session* fork = nullptr;
  ExpectNone(godwit_session_fork(session.get(), &fork));
  const OwnSession other(fork);
  godwit_tokens* all = nullptr;
  ExpectNone(godwit_session_tokens(other.get(), &all));
  const OwnTokens own(all);
  Tokens text(all->ids, all->ids + all->count);
  Tokens expected = prompt;
  for (const int32_t token : TokensOf(*first)) expected.push_back(token);
  EXPECT_EQ(text, expected);
  const OwnResult on = Generate(other, text, greedy.options);
  EXPECT_GE(on->cached_tokens, std::ssize(text) - 1);
  godwit_kv_report* report = nullptr;
  ExpectNone(godwit_session_get_kv(other.get(), &report));
  EXPECT_STREQ(report->policy, "dense");
  EXPECT_GT(report->bytes, 0);
  godwit_kv_report_free(report);
  int64_t limit = 0, learned = -1;
  ExpectNone(godwit_session_limits(other.get(), &limit, &learned));
  EXPECT_GT(limit, 0);
  EXPECT_EQ(learned, 0);
}

TEST_F(Capi, RequestsRunBesideEachOther) {
  const Tokens prompt = Tokenize(engine(), "Once upon a time");
  std::vector<godwit_generation*> generations(3);
  for (size_t i = 0; i < generations.size(); ++i) {
    Greedy greedy(12);
    greedy.options.sequence = i;
    ExpectNone(godwit_engine_submit(engine().get(), prompt.data(), std::ssize(prompt),
                                    &greedy.options, nullptr, &generations[i]));
  }
  const OwnSession session = NewSession(engine());
  const OwnResult expected = Generate(session, prompt, Greedy(12).options);
  for (godwit_generation* const generation : generations) {
    Tokens read;
    for (bool done = false; !done;) {
      godwit_event* event = nullptr;
      ExpectNone(godwit_generation_next(generation, -1, &event));
      ASSERT_NE(event, nullptr);
      read.insert(read.end(), event->tokens, event->tokens + event->tokens_count);
      done = event->done;
      godwit_event_free(event);
    }
    EXPECT_EQ(read, TokensOf(*expected));
    godwit_result* result = nullptr;
    ExpectNone(godwit_generation_wait(generation, &result));
    EXPECT_EQ(TokensOf(*OwnResult(result)), read);
    godwit_generation_free(generation);
  }
  Greedy listening(4);
  listening.options.on_event = [](void*, const godwit_event*) { return true; };
  godwit_generation* refused = nullptr;
  MessageOf(
      godwit_engine_submit(engine().get(), prompt.data(), 1, &listening.options, nullptr, &refused),
      GODWIT_ERROR_INPUT);
}

TEST_F(Capi, GenerationsAreCancelled) {
  Greedy greedy(100'000);
  const Tokens prompt = Tokenize(engine(), "Once");
  godwit_session_options sinks;
  godwit_session_options_init(&sinks, sizeof(sinks));
  sinks.kv = "sinks:4+60";
  godwit_generation* generation = nullptr;
  ExpectNone(godwit_engine_submit(engine().get(), prompt.data(), std::ssize(prompt),
                                  &greedy.options, &sinks, &generation));
  std::thread([generation] { godwit_generation_cancel(generation); }).join();
  godwit_result* result = nullptr;
  ExpectNone(godwit_generation_wait(generation, &result));
  EXPECT_EQ(OwnResult(result)->finish_reason, GODWIT_FINISH_CANCELLED);
  godwit_generation_free(generation);
}

TEST_F(Capi, LogitsAndHiddenStates) {
  const Engine cpp(kTiny, {});
  const Tokens text = cpp.Tokenize("Once upon a time there was a bird");
  godwit_engine_facts facts;
  facts.struct_size = sizeof(facts);
  ExpectNone(godwit_engine_get_facts(engine().get(), &facts));
  EXPECT_EQ(facts.vocab_size, cpp.vocab_size());
  EXPECT_EQ(facts.hidden_size, cpp.hidden_size());
  EXPECT_TRUE(
      std::ranges::equal(std::span(facts.end_tokens, facts.end_tokens_count), cpp.end_tokens()));
  EXPECT_STREQ(facts.isa, std::string(cpp.isa()).c_str());

  const int64_t first = 3, rows = std::ssize(text) - first;
  std::vector<float> expected, logits(rows * facts.vocab_size), states(rows * facts.hidden_size);
  Session cpp_session = cpp.NewSession({});
  cpp_session.Logits(
      text, [&](int64_t, auto row) { expected.insert(expected.end(), row.begin(), row.end()); },
      first);
  const OwnSession session = NewSession(engine());
  std::vector<int64_t> positions;
  godwit_rows_options options{};
  options.struct_size = sizeof(options);
  options.first = first;
  options.out = logits.data();
  options.user_data = &positions;
  options.on_row = [](void* user_data, int64_t position, const float*, int64_t) {
    static_cast<std::vector<int64_t>*>(user_data)->push_back(position);
    return true;
  };
  ExpectNone(godwit_session_logits(session.get(), text.data(), std::ssize(text), &options));
  EXPECT_EQ(logits, expected);
  ASSERT_EQ(std::ssize(positions), rows);
  EXPECT_EQ(positions.front(), first);
  EXPECT_EQ(positions.back(), std::ssize(text) - 1);

  std::vector<float> expected_states;
  cpp_session.HiddenStates(
      text,
      [&](int64_t, auto row) {
        expected_states.insert(expected_states.end(), row.begin(), row.end());
      },
      first);
  options.out = states.data();
  ExpectNone(godwit_session_hidden_states(session.get(), text.data(), std::ssize(text), &options));
  EXPECT_EQ(states, expected_states);
  EXPECT_NE(states.front(), states.back());

  options.on_row = [](void*, int64_t, const float*, int64_t) { return false; };
  MessageOf(godwit_session_logits(session.get(), text.data(), std::ssize(text), &options),
            GODWIT_ERROR_CANCELLED);
  options.first = std::ssize(text);
  MessageOf(godwit_session_logits(session.get(), text.data(), std::ssize(text), &options),
            GODWIT_ERROR_INPUT);
}

TEST_F(Capi, TextsAreSavedAndLoaded) {
  const TempFolder folder;
  godwit_load_options options;
  godwit_load_options_init(&options, sizeof(options));
  const std::string cache = (folder.path() / "cache").string();
  options.cache_dir = cache.c_str();
  const OwnEngine saving = Load(kTiny, &options);
  const OwnSession session = NewSession(saving);
  Greedy greedy(100);
  greedy.options.keep_as = "story";
  const OwnResult told = Generate(session, Tokenize(saving, "Once upon a time"), greedy.options);
  int64_t saved = 0, loaded = 0;
  ExpectNone(godwit_session_save(session.get(), &saved));
  EXPECT_EQ(saved, 64);
  const OwnSession later = NewSession(saving);
  ExpectNone(godwit_session_load(later.get(), "story", &loaded));
  EXPECT_GE(loaded, saved);
  godwit_saved_texts* texts = nullptr;
  ExpectNone(godwit_engine_list_saved(saving.get(), &texts));
  ASSERT_GE(texts->count, 1);
  const std::string id = texts->texts[0].id;
  ASSERT_EQ(texts->texts[0].names_count, 1);
  EXPECT_STREQ(texts->texts[0].names[0], "story");
  godwit_saved_texts_free(texts);
  bool done = false;
  ExpectNone(godwit_engine_stop_keeping(saving.get(), "story", &done));
  EXPECT_TRUE(done);
  ExpectNone(godwit_engine_remove_saved(saving.get(), id.c_str(), &done));
  EXPECT_TRUE(done);
  ExpectNone(godwit_engine_remove_saved(saving.get(), id.c_str(), &done));
  EXPECT_FALSE(done);
  MessageOf(godwit_session_load(later.get(), "other", &loaded), GODWIT_ERROR_INPUT);
}

TEST_F(Capi, GroupsShareMemory) {
  godwit_load_options options;
  godwit_load_options_init(&options, sizeof(options));
  options.kv_memory_bytes = 64 << 20;
  godwit_group* group = nullptr;
  ExpectNone(godwit_group_new(&options, &group));
  options.group = group;
  const OwnEngine one = Load(kTiny, &options);
  const OwnEngine two = Load(kTiny, &options);
  const OwnSession session = NewSession(two);
  Generate(session, Tokenize(two, "Once"), Greedy(4).options);
  ExpectNone(godwit_group_forget_texts(group));
  godwit_group_memory memory;
  memory.struct_size = sizeof(memory);
  ExpectNone(godwit_group_get_memory(group, &memory));
  EXPECT_EQ(memory.kv_memory_bytes, 64 << 20);
  EXPECT_GT(memory.used_kv_bytes, 0);
  godwit_group_free(group);
}

TEST_F(Capi, TakesRecommendations) {
  const OwnEngine stories = Load(kStories);
  godwit_sampler_options sampler;
  godwit_sampler_options_init(&sampler, sizeof(sampler));
  EXPECT_EQ(sampler.top_k, SamplerOptions().top_k);
  godwit_strings* notes = nullptr;
  ExpectNone(godwit_engine_recommend_sampler(stories.get(), &sampler, &notes));
  EXPECT_GE(notes->count, 0);
  godwit_strings_free(notes);
  const SamplerDefaults expected = Engine(kStories, {}).sampler_defaults();
  EXPECT_EQ(sampler.temperature,
            expected.choices.temperature.value_or(SamplerOptions().temperature));
  EXPECT_EQ(sampler.top_k, expected.choices.top_k.value_or(SamplerOptions().top_k));
}

// A conversation and a tool, by the chat model of the repository.
class CapiChat : public testing::Test {
 protected:
  static void SetUpTestSuite() { engine_ = new OwnEngine(Load(kStories)); }
  static void TearDownTestSuite() { delete engine_; }
  const OwnEngine& engine() const { return *engine_; }

 private:
  static inline OwnEngine* engine_ = nullptr;
};

godwit_message User(const std::string& text) {
  return {.struct_size = sizeof(godwit_message),
          .role = "user",
          .content = text.c_str(),
          .content_bytes = text.size(),
          .fields = nullptr};
}

TEST_F(CapiChat, PromptsFollowTheTemplate) {
  bool has = false;
  ExpectNone(godwit_engine_has_chat_template(engine().get(), &has));
  EXPECT_TRUE(has);
  const std::string said = "A story about a bird.";
  const godwit_message messages[] = {User(said)};
  godwit_text* text = nullptr;
  ExpectNone(godwit_engine_apply_chat_template(engine().get(), messages, 1, true, nullptr, nullptr,
                                               &text));
  const OwnText own(text);
  const Engine cpp(kStories, {});
  const Message cpp_messages[] = {{.role = "user", .content = said}};
  EXPECT_EQ(text->data, cpp.ApplyChatTemplate(cpp_messages));

  const OwnSession session = NewSession(engine());
  godwit_chat_prompt* prompt = nullptr;
  ExpectNone(godwit_session_chat_prompt(session.get(), messages, 1, nullptr, nullptr, &prompt));
  EXPECT_EQ(Tokens(prompt->ids, prompt->ids + prompt->count),
            cpp.Tokenize(text->data, /*add_special=*/false));
  EXPECT_GT(prompt->query_tokens, 1);
  Greedy greedy(12);
  greedy.options.answers = prompt;
  const OwnResult result =
      Generate(session, {prompt->ids, prompt->ids + prompt->count}, greedy.options);
  godwit_text* answer = nullptr;
  ExpectNone(godwit_chat_prompt_read(prompt, result->text, result->text_bytes, &answer));
  const Json message = Json::parse(OwnText(answer)->data);
  EXPECT_EQ(message["role"], "assistant");
  EXPECT_EQ(message["content"], result->text);
  godwit_chat_prompt_free(prompt);
}

TEST_F(CapiChat, AnswersRequests) {
  godwit_chat* chat = nullptr;
  ExpectNone(godwit_chat_new(engine().get(), nullptr, &chat));
  Json body = {{"messages", {{{"role", "user"}, {"content", "A story."}}}},
               {"max_tokens", 12},
               {"temperature", 0},
               {"n", 2},
               {"logprobs", true}};
  const auto complete = [&](bool (*on_chunk)(void*, const char*, size_t), void* user_data,
                            godwit_text** answer) {
    const std::string text = body.dump();
    return godwit_chat_complete(chat, text.data(), text.size(), on_chunk, user_data, answer);
  };
  godwit_text* answer = nullptr;
  ExpectNone(complete(nullptr, nullptr, &answer));
  const Json whole = Json::parse(OwnText(answer)->data);
  ASSERT_EQ(whole["choices"].size(), 2U);
  const std::string content = whole["choices"][0]["message"]["content"];
  EXPECT_FALSE(content.empty());
  EXPECT_FALSE(whole["choices"][0]["logprobs"]["content"].empty());

  body["n"] = 1;
  body["stream"] = true;
  std::string streamed;
  ExpectNone(complete(
      [](void* user_data, const char* chunk, size_t bytes) {
        const Json json = Json::parse(std::string_view(chunk, bytes));
        const Json delta = json["choices"][0]["delta"];
        if (delta.contains("content") && delta["content"].is_string()) {
          static_cast<std::string*>(user_data)->append(delta["content"].get<std::string>());
        }
        return true;
      },
      &streamed, &answer));
  EXPECT_EQ(streamed, content);
  EXPECT_EQ(Json::parse(OwnText(answer)->data)["choices"][0]["finish_reason"], "length");

  answer = nullptr;
  MessageOf(complete([](void*, const char*, size_t) { return false; }, nullptr, &answer),
            GODWIT_ERROR_CANCELLED);
  EXPECT_EQ(answer, nullptr);
  body["unknown"] = 1;
  EXPECT_NE(MessageOf(complete(nullptr, nullptr, &answer), GODWIT_ERROR_INPUT).find("unknown"),
            std::string::npos);
  godwit_chat_cancel(chat);  // between calls it does nothing
  godwit_chat_free(chat);
}

TEST_F(CapiChat, RefusesWrongToolsAndMessages) {
  const OwnSession session = NewSession(engine());
  const std::string said = "How warm is it?";
  const godwit_message messages[] = {User(said)};
  godwit_chat_prompt* prompt = nullptr;
  EXPECT_NE(MessageOf(godwit_session_chat_prompt(session.get(), messages, 1, nullptr,
                                                 R"([{"type": "function"}])", &prompt),
                      GODWIT_ERROR_INPUT)
                .find("function"),
            std::string::npos);
  godwit_message wrong = User(said);
  wrong.struct_size = 8;
  MessageOf(godwit_session_chat_prompt(session.get(), &wrong, 1, nullptr, nullptr, &prompt),
            GODWIT_ERROR_INPUT);
}

}  // namespace
}  // namespace godwit::capi::capi_test
