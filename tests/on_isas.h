// Suites whose cases are computed by several instruction sets: some always, the others in
// ./check --full. What their kernels compute and touch, src/kernels/ tests always, under sanitizers
// too, and so one instruction set does there for what is above the kernels.
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

// Of the instruction sets that a suite names, the best first, those that run in this build.
inline std::vector<const kernels::Isa*> RunHere(std::vector<const kernels::Isa*> always) {
#ifdef GODWIT_SANITIZED
  always.resize(1);
#endif
  return always;
}

// name_of: makes a name of a case. always: kernels::BestAndScalar(), or kernels::Best() where cases
// are about what is above the kernels.
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
