// Flags as environment variables: --top-k is GODWIT_TOP_K for all verbs that have it. Where two
// verbs mean different things by a flag, each has a variable of its own: GODWIT_RUN_SAMPLES.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "console/options/help.h"

namespace godwit::console {

// "--top-k" -> "GODWIT_TOP_K"; of a verb, "eval stream": "GODWIT_EVAL_STREAM_TOP_K".
std::string VariableName(std::string_view long_name, std::string_view verb = "");

// The GODWIT_ variables of this process that are not empty, by name.
std::vector<std::string> GivenVariables();

// Of those that no flag of any of the commands has: what is wrong, and which was probably meant.
std::vector<std::string> DescribeUnknownVariables(std::span<const std::string> given,
                                                  std::span<const CommandPage> pages);

}  // namespace godwit::console
