// Suites whose cases run on several instruction sets: some always, the others in ./check --full.
// Under sanitizers one instruction set is enough for code above the kernels, because src/kernels/
// always tests every kernel, under sanitizers too.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "base/test_support.h"
#include "kernels/kernel_test_support.h"

namespace godwit {

template <typename Case>
class TestOnIsas : public testing::TestWithParam<std::tuple<Case, const kernels::Isa*>> {
 protected:
  const Case& one() const { return std::get<0>(this->GetParam()); }
  std::string isa() const { return std::string(std::get<1>(this->GetParam())->name); }
};

// The instruction sets of a suite, best first, that run in this build.
inline std::vector<const kernels::Isa*> RunHere(std::vector<const kernels::Isa*> always) {
#ifdef GODWIT_SANITIZED
  always.resize(1);
#endif
  return always;
}

// name_of: the name of a case. always: kernels::BestAndScalar(), or kernels::Best() for cases about
// code above the kernels.
#define GODWIT_ON_ISAS(Suite, cases, name_of, always)                                             \
  const auto NamesOf##Suite = [](const auto& info) {                                              \
    const auto& [one, isa] = info.param;                                                          \
    return TestName(name_of(one) + "_" + std::string(isa->name));                                 \
  };                                                                                              \
  INSTANTIATE_TEST_SUITE_P(                                                                       \
      All, Suite, testing::Combine(testing::ValuesIn(cases), testing::ValuesIn(RunHere(always))), \
      NamesOf##Suite);                                                                            \
  INSTANTIATE_TEST_SUITE_P(FULL_OtherIsas, Suite,                                                 \
                           testing::Combine(testing::ValuesIn(cases),                             \
                                            testing::ValuesIn(kernels::AllBut(RunHere(always)))), \
                           NamesOf##Suite)

}  // namespace godwit
