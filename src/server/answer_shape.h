// In which words an answer goes out: those of /v1/chat/completions and /v1/completions, those of
// /v1/responses, of /v1/messages, or of /infill. Of a stream, server-sent events.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "chat/answer_form.h"
#include "chat/completion_json.h"
#include "chat/completion_request.h"
#include "chat/response_request.h"
#include "chat/token_texts.h"
#include "godwit/engine.h"

namespace godwit::server {

class AnswerShape {
 public:
  virtual ~AnswerShape() = default;

  // How the answers will be written; before all else.
  virtual void Begin(const chat::AnswerForm& form) = 0;

  // echoes: of the prompts, where the request wants them.
  virtual std::string Whole(std::span<const GenerateResult> results,
                            std::span<const Event> echoes) = 0;

  // The pieces of a stream, any of which may be empty.
  virtual std::string First() = 0;
  virtual std::string Of(int choice, const Event& event) = 0;
  virtual std::string Progress(const PromptProgress& progress) = 0;
  virtual std::string Last(std::span<const GenerateResult> results) = 0;
  // In place of the last one.
  virtual std::string Failed(int status, std::string_view message) = 0;
};

// All of which must outlive it.
std::unique_ptr<AnswerShape> CompletionShape(const chat::CompletionRequest& request,
                                             const chat::CompletionName& name,
                                             chat::TokenTexts& texts);
std::unique_ptr<AnswerShape> ResponseShape(const chat::ResponseRequest& request,
                                           const chat::CompletionName& name);
std::unique_ptr<AnswerShape> InfillShape(const chat::CompletionRequest& request,
                                         const chat::CompletionName& name);
std::unique_ptr<AnswerShape> AnthropicShape(const chat::CompletionRequest& request,
                                            const chat::CompletionName& name);

}  // namespace godwit::server
