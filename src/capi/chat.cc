// Conversations: prompts by the model's template, and whole requests in the shape of OpenAI's API.

#include <atomic>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/error.h"
#include "base/json.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/objects.h"
#include "capi/options.h"
#include "capi/recommended.h"
#include "chat/answers.h"
#include "chat/completion_chunks.h"
#include "chat/completion_json.h"
#include "chat/token_texts.h"
#include "chat/tools.h"

namespace godwit::capi {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxValues = 64'000'000;  // of a request: tokens of several prompts among them

godwit_chat_prompt* NewChatPrompt(const godwit_session& session, std::vector<Message> messages,
                                  const char* variables, const char* tools) {
  auto prompt = std::make_unique<ChatPrompt>();
  if (tools != nullptr) {
    prompt->request.tools = chat::ParseTools(ParseOrderedJson(tools, "the tools"));
  }
  prompt->prompt =
      chat::PromptOf(*session.engine, session.session, messages,
                     variables == nullptr ? "{}" : variables, tools == nullptr ? "[]" : tools);
  prompt->struct_size = sizeof(godwit_chat_prompt);
  prompt->ids = prompt->prompt.tokens.data();
  prompt->count = std::ssize(prompt->prompt.tokens);
  prompt->query_tokens = prompt->prompt.query_tokens;
  return prompt.release();
}

// A call of godwit_chat_complete while it lives.
class Running {
 public:
  explicit Running(godwit_chat& chat) : chat_(chat) {
    const std::lock_guard lock(chat_.mutex);
    chat_.running.insert(&cancel_);
  }
  ~Running() {
    const std::lock_guard lock(chat_.mutex);
    chat_.running.erase(&cancel_);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  CancelToken& cancel() { return cancel_; }

 private:
  godwit_chat& chat_;
  CancelToken cancel_;
};

struct OnChunk {
  bool (*call)(void* user_data, const char* chunk, size_t chunk_bytes);
  void* user_data;
};

std::string NextId() {
  static std::atomic<int64_t> last = 0;
  return fmt::format("{:08d}", ++last);
}

std::string AnswerBody(godwit_chat& chat, std::string_view body, const OnChunk& on_chunk) {
  const chat::CompletionRequest request = chat::ParseCompletionRequest(
      ParseOrderedJson(body, "the request",
                       {.reject_duplicate_keys = true, .max_values = kMaxValues}),
      chat.defaults);
  Running running(chat);
  CancelToken& cancel = running.cancel();
  const chat::CompletionName name{.id = NextId(), .model = chat.model_name};
  chat::TokenTexts texts(*chat.engine);
  chat::CompletionChunks chunks(request, name, texts);
  const auto send = [&](const Json& chunk) {
    if (chunk.is_null() || on_chunk.call == nullptr) return;
    const std::string text = DumpJson(chunk);
    if (!on_chunk.call(on_chunk.user_data, text.data(), text.size())) cancel.Cancel();
  };
  std::vector<bool> begun(request.answers());
  chat::AnswerForm form;
  std::vector<Event> echoes;
  const auto on_event = [&](int choice, const Event& event) {
    if (!request.stream) return;
    if (!begun[choice]) send(chunks.First(choice));
    begun[choice] = true;
    if (request.return_progress && choice == 0 && event.progress) {
      send(chunks.Progress(*event.progress));
    }
    send(chunks.Of(choice, event));
  };
  const auto results = chat::AnswerRequest(
      *chat.engine, chat.session, chat.options, request, &cancel, on_event,
      [&](const chat::AnswerForm& of_prompt) {
        form = of_prompt;
        chunks.Begin(form);
      },
      &echoes);
  cancel.ThrowIfCancelled();
  if (!request.stream) {
    return DumpJson(chat::CompletionJson(request, results, form, name, texts, echoes));
  }
  Json last;
  for (size_t i = 0; i < results.size(); ++i) {
    last = chunks.Last(static_cast<int>(i), results[i]);
    send(last);
  }
  if (request.include_usage) {
    last = chunks.Usage(results);
    send(last);
  }
  return DumpJson(last);
}

}  // namespace
}  // namespace godwit::capi

using godwit::capi::Guard;
using godwit::capi::Require;

godwit_error* godwit_session_chat_prompt(const godwit_session* session,
                                         const godwit_message* messages, int64_t count,
                                         const char* variables, const char* tools,
                                         godwit_chat_prompt** prompt) {
  return Guard([&] {
    Require(prompt, "prompt");
    *prompt = godwit::capi::NewChatPrompt(
        Require(session, "session"), godwit::capi::MessagesOf(messages, count), variables, tools);
  });
}

void godwit_chat_prompt_free(godwit_chat_prompt* prompt) {
  delete static_cast<godwit::capi::ChatPrompt*>(prompt);
}

godwit_error* godwit_chat_prompt_read(const godwit_chat_prompt* prompt, const char* text,
                                      size_t text_bytes, godwit_text** message) {
  return Guard([&] {
    Require(message, "message");
    const auto& own = static_cast<const godwit::capi::ChatPrompt&>(Require(prompt, "prompt"));
    *message = godwit::capi::NewText(godwit::DumpJson(godwit::chat::MessageOf(
        own.request, own.prompt.form, godwit::capi::TextOf(text, text_bytes, "text"))));
  });
}

godwit_error* godwit_chat_new(const godwit_engine* engine, const godwit_chat_options* options,
                              godwit_chat** chat) {
  return Guard([&] {
    Require(chat, "chat");
    const auto& model = Require(engine, "engine").engine;
    const godwit_chat_options c = godwit::capi::Complete(options);
    const godwit::SessionOptions session = godwit::capi::OptionsOf(c.session);
    auto made = std::unique_ptr<godwit_chat>(
        new godwit_chat{.engine = model,
                        .options = session,
                        .session = model->NewSession(session),
                        .defaults = {.lenient = c.lenient, .random_seeds = true},
                        .model_name = c.model_name == nullptr ? "godwit" : c.model_name});
    godwit::chat::CompletionDefaults& defaults = made->defaults;
    defaults.kv_choices = {session.kv};
    if (!session.prefill.empty()) defaults.prefill_choices = {session.prefill};
    defaults.generate.query_tokens = 0;  // the template says how long the question is
    (void)godwit::capi::Recommend(model->sampler_defaults(), defaults.generate.sampler);
    defaults.repeat_last_n = defaults.generate.sampler.repeat_last_n;
    *chat = made.release();
  });
}

void godwit_chat_free(godwit_chat* chat) { delete chat; }

godwit_error* godwit_chat_complete(godwit_chat* chat, const char* body, size_t body_bytes,
                                   bool (*on_chunk)(void* user_data, const char* chunk,
                                                    size_t chunk_bytes),
                                   void* user_data, godwit_text** answer) {
  return Guard([&] {
    Require(answer, "answer");
    *answer = godwit::capi::NewText(godwit::capi::AnswerBody(
        Require(chat, "chat"), godwit::capi::TextOf(body, body_bytes, "body"),
        {.call = on_chunk, .user_data = user_data}));
  });
}

void godwit_chat_cancel(godwit_chat* chat) {
  if (chat == nullptr) return;
  const std::lock_guard lock(chat->mutex);
  for (godwit::CancelToken* const cancel : chat->running) cancel->Cancel();
}
