// The model's own attention: every token is kept and seen, up to the context.
#pragma once

#include <memory>
#include <string_view>

#include "attention/make_policy.h"

namespace godwit {

// "dense" takes no arguments.
std::unique_ptr<AttentionPolicy> MakeDensePolicy(const AttentionGeometry& geometry,
                                                 const PolicyOptions& options,
                                                 std::string_view arguments);

}  // namespace godwit
