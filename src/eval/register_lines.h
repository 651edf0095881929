// The text of StreamEval (StreamingLLM, section 4.3): numbered lines that each hold a number, and
// queries. Only the paper's figure shows it.
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

// The header and a line; both end in a newline.
inline constexpr std::string_view kRegisterHeader =
    "Below is a record of lines I want you to remember.\n";
std::string RegisterLine(int64_t line, int64_t value);

// The query ends where the answer begins, which is " <value>".
std::string RegisterQuery(int64_t line);
std::string RegisterAnswer(int64_t value);

// The number of a line, uniform from 1 to 50000; 1668 to 45603 in the paper's figure. A pure
// function of its arguments.
int64_t RegisterValue(uint64_t seed, int64_t sample, int64_t line);

// Whether the first number in the answer is the value.
bool AnswersRegister(std::string_view answer, int64_t value);

}  // namespace godwit::eval
