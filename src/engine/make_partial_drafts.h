// What GenerateOptions::draft says behind "partial".
#pragma once

#include <memory>
#include <string_view>

#include "base/stopwatch.h"
#include "engine/text_plan.h"
#include "generate/draft_source.h"

namespace godwit {

// arguments: what follows "partial:", or nothing. now_ms: as PartialDrafts takes it. Throws
// Error(kInput) for what makes no sense, Error(kUnsupported) for texts of which there is no part to
// look at.
std::unique_ptr<DraftSource> MakePartialDrafts(std::string_view arguments, const TextPlan& plan,
                                               NowMs now_ms);

}  // namespace godwit
