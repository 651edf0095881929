// Question: what one row of a task asks a model, whatever the row looked like.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace godwit::eval {

// What the model scores is " " + answer behind the context.
struct Choice {
  std::string context;
  std::string answer;  // its characters, without the space, are the length that acc_norm divides by
};

struct Question {
  std::string where;            // "folder/piqa.jsonl:12", for messages
  std::vector<Choice> choices;  // a single one where the model has nothing to choose from
  size_t gold = 0;              // which of the choices is right
};

}  // namespace godwit::eval
