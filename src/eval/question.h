// Question: what one row of a task asks a model, in the same form for every task.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace godwit::eval {

// A possible answer. The model scores " " + answer behind the context.
struct Choice {
  std::string context;
  std::string answer;  // without the space; acc_norm divides by its characters
};

struct Question {
  std::string where;            // "folder/piqa.jsonl:12", for messages
  std::vector<Choice> choices;  // a single one if there is nothing to choose
  size_t gold = 0;              // the index of the right choice
};

}  // namespace godwit::eval
