// AnswerShape: the form of an answer: that of /v1/chat/completions and /v1/completions,
// /v1/responses, /v1/messages, or /infill. Streams are server-sent events.
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

  // Sets the form of the answers. To be called first.
  virtual void Begin(const chat::AnswerForm& form) = 0;

  // The body of a whole answer. echoes: the prompts, where the request wants them.
  virtual std::string Whole(std::span<const GenerateResult> results,
                            std::span<const Event> echoes) = 0;

  // Pieces of a stream, any of which may be empty.
  virtual std::string First() = 0;
  virtual std::string Of(int choice, const Event& event) = 0;
  virtual std::string Progress(const PromptProgress& progress) = 0;
  virtual std::string Last(std::span<const GenerateResult> results) = 0;
  // The last piece of a stream that failed, instead of Last.
  virtual std::string Failed(int status, std::string_view message) = 0;
};

// Shapes of one request. All arguments must outlive them.
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
