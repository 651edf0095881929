// ResponseItems: the items of an answer in the shape of /v1/responses, as they grow: reasoning,
// messages and function calls.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "chat/answer_pieces.h"
#include "chat/completion_json.h"

namespace godwit::chat {

// An event of a stream, without its sequence number.
struct ResponseEvent {
  std::string type;
  nlohmann::ordered_json fields;
};

class ResponseItems {
 public:
  // name: of the answer, from which the ids of its items are made. It must outlive this object.
  explicit ResponseItems(const CompletionName& name) : name_(name) {}

  std::vector<ResponseEvent> Take(const AnswerPieces& pieces);
  // Ends the answer. An empty answer becomes an empty message. status: of the last item.
  std::vector<ResponseEvent> End(std::string_view status);
  const nlohmann::ordered_json& output() const { return output_; }

 private:
  void Open(AnswerPiece::Kind kind, const std::string& name, std::vector<ResponseEvent>& events);
  void Say(const std::string& text, std::vector<ResponseEvent>& events);
  void Close(std::string_view status, std::vector<ResponseEvent>& events);
  nlohmann::ordered_json Placed(nlohmann::ordered_json fields) const;

  nlohmann::ordered_json NewItem(AnswerPiece::Kind kind, const std::string& function) const;

  const CompletionName& name_;
  nlohmann::ordered_json output_ = nlohmann::ordered_json::array();
  bool is_open_ = false;
  AnswerPiece::Kind kind_ = AnswerPiece::Kind::kText;  // of the last item
  std::string text_;                                   // the last item's
};

}  // namespace godwit::chat
