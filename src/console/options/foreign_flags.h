// Flags of llama.cpp and of earlier versions that people type and this program has not.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

namespace godwit::console {

// What takes the place of `name` ("-ngl"), or why nothing does: the end of one sentence. has: of a
// flag of ours, whether the verb has it; what would only lead to another refusal is not said.
std::optional<std::string_view> AboutForeignFlag(std::string_view name,
                                                 const std::function<bool(std::string_view)>& has);

}  // namespace godwit::console
