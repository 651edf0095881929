// How help looks: entries of a name and a text, in columns, wrapped for a terminal of 80 columns.
#pragma once

#include <string>
#include <string_view>

namespace godwit::cli {

constexpr std::string_view kEnvironmentHelp =
    "Every flag is also an environment variable, --top-k for example GODWIT_TOP_K; the command "
    "line wins.";

std::string HelpEntry(std::string_view name, std::string_view text);

// `text` in lines of at most 80 columns, those after the first indented. No newline at the end.
std::string Wrap(std::string_view text, size_t indent = 0);

}  // namespace godwit::cli
