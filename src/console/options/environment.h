// Flags as environment variables: --top-k is GODWIT_TOP_K for all verbs that have the flag. If a
// flag means different things in two verbs, each verb has its own variable: GODWIT_RUN_SAMPLES.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "console/options/help.h"

namespace godwit::console {

// The variable of a flag: "GODWIT_TOP_K" for "--top-k"; for the verb "eval stream" alone
// "GODWIT_EVAL_STREAM_TOP_K".
std::string VariableName(std::string_view long_name, std::string_view verb = "");

// The names of this process's GODWIT_ variables that are not empty.
std::vector<std::string> GivenVariables();

// Complaints about variables that belong to no flag of any command, with the variable that was
// probably meant.
std::vector<std::string> DescribeUnknownVariables(std::span<const std::string> given,
                                                  std::span<const CommandPage> pages);

}  // namespace godwit::console
