// The text of StreamEval: numbered lines that each hold a number, and queries for it (StreamingLLM,
// section 4.3; its figure is all that was published of it).
//
//   Below is a record of lines I want you to remember.
//   The REGISTER_CONTENT in line 0 is <8806>
//   ...
//   Query: The REGISTER_CONTENT in line 0 is
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace godwit::eval {

// Both end in a newline.
inline constexpr std::string_view kRegisterHeader =
    "Below is a record of lines I want you to remember.\n";
std::string RegisterLine(int64_t line, int64_t value);

// Ends where the answer begins, which is " <value>".
std::string RegisterQuery(int64_t line);
std::string RegisterAnswer(int64_t value);

// 1 to 50000, uniform: a pure function of its arguments. The paper's figure shows 1668 to 45603.
int64_t RegisterValue(uint64_t seed, int64_t sample, int64_t line);

// Whether the first number in the answer is the value.
bool AnswersRegister(std::string_view answer, int64_t value);

}  // namespace godwit::eval
