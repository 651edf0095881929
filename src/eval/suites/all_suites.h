// All suites. A new one is a file beside these, with its line here and in all_suites.cc.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "eval/suites/sample.h"

namespace godwit::eval {

std::span<const Suite> PasskeySuites();
std::span<const Suite> NeedleSuites();
std::span<const Suite> KvRetrievalSuites();
std::span<const Suite> LinesSuites();
std::span<const Suite> BabilongSuites();
std::span<const Suite> RulerNeedleSuites();
std::span<const Suite> RulerTrackingSuites();
std::span<const Suite> RulerCommonWordsSuites();
std::span<const Suite> RulerFrequentWordsSuites();
std::span<const Suite> RulerQaSuites();

// The suites of `godwit eval VERB`, in the order in which they run.
std::vector<const Suite*> SuitesOf(std::string_view verb);

// The suite of a name. Throws Error(kInput) that lists the verb's suites.
const Suite& FindSuite(std::string_view verb, std::string_view name);

}  // namespace godwit::eval
