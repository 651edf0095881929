// The fields by which an assistant's message tells its template of the thought before it.
#pragma once

#include <string>

namespace godwit::chat {

// Message::fields of a thought: {"reasoning_content", "thinking"}, the names that templates know;
// empty for no thought. The template decides whether an earlier thought is written again.
std::string ThoughtFields(const std::string& thought);
// The thought in Message::fields; empty where there is none.
std::string ThoughtIn(const std::string& fields);

}  // namespace godwit::chat
