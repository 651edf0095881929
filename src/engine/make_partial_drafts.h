// What GenerateOptions::draft says behind "partial".
#pragma once

#include <memory>
#include <string_view>

#include "engine/text_plan.h"
#include "generate/draft_source.h"

namespace godwit {

// arguments: what follows "partial:", or nothing. Throws Error(kInput) for what makes no sense,
// Error(kUnsupported) for texts of which there is no part to look at.
std::unique_ptr<DraftSource> MakePartialDrafts(std::string_view arguments, const TextPlan& plan);

}  // namespace godwit
