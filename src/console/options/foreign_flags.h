// Flags of llama.cpp and of earlier versions, which people type and this program lacks.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

namespace godwit::console {

// The replacement of `name` ("-ngl"), or why there is none: the end of one sentence. has: whether
// the verb has a flag of ours; a replacement that the verb lacks is not named.
std::optional<std::string_view> AboutForeignFlag(std::string_view name,
                                                 const std::function<bool(std::string_view)>& has);

}  // namespace godwit::console
