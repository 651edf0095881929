// The objects behind the opaque types of godwit.h.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "base/cancel.h"
#include "chat/answers.h"
#include "chat/completion_request.h"
#include "godwit/engine.h"
#include "godwit/godwit.h"

struct godwit_group {
  std::shared_ptr<const godwit::EngineGroup> group;
};

struct godwit_engine {
  std::shared_ptr<const godwit::Engine> engine;
};

struct godwit_session {
  godwit::Session session;
  std::shared_ptr<const godwit::Engine> engine;  // for prompts by its template
};

struct godwit_generation {
  godwit::Generation generation;
};

struct godwit_chat {
  std::shared_ptr<const godwit::Engine> engine;
  godwit::SessionOptions options;
  godwit::Session session;  // makes tokens, and knows the limits
  godwit::chat::CompletionDefaults defaults;
  std::string model_name;

  std::mutex mutex;  // guards `running`
  std::set<godwit::CancelToken*> running;
};

namespace godwit::capi {

// A godwit_chat_prompt with the form of the answer to it.
struct ChatPrompt : godwit_chat_prompt {
  chat::Prompt prompt;
  chat::CompletionRequest request;  // the tools by which the answer is read
};

}  // namespace godwit::capi
