// What a message of the assistant tells its template of the thought before it.
#pragma once

#include <string>

namespace godwit::chat {

// Message::fields: {"reasoning_content", "thinking"}, as templates know it; empty for no thought.
// Whether an earlier thought is written again is up to the template.
std::string ThoughtFields(const std::string& thought);
// The other way; empty where there is none.
std::string ThoughtIn(const std::string& fields);

}  // namespace godwit::chat
