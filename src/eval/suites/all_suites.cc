#include "eval/suites/all_suites.h"

#include "base/error.h"
#include "base/name_list.h"
#include "base/quote.h"

namespace godwit::eval {

std::vector<const Suite*> SuitesOf(std::string_view verb) {
  std::vector<const Suite*> suites;
  for (const auto list : {PasskeySuites(), NeedleSuites(), KvRetrievalSuites(), LinesSuites(),
                          BabilongSuites(), RulerNeedleSuites(), RulerTrackingSuites(),
                          RulerCommonWordsSuites(), RulerFrequentWordsSuites(), RulerQaSuites()}) {
    for (const Suite& suite : list) {
      if (suite.verb == verb) suites.push_back(&suite);
    }
  }
  return suites;
}

const Suite& FindSuite(std::string_view verb, std::string_view name) {
  const auto suites = SuitesOf(verb);
  for (const Suite* suite : suites) {
    if (suite->name == name) return *suite;
  }
  Throw(ErrorKind::kInput, "unknown task {}; there are: {}", Quote(name),
        NameList(suites, [](const Suite* suite) { return suite->name; }));
}

}  // namespace godwit::eval
