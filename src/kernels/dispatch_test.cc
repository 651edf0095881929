#include "kernels/dispatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>
#include <string>

#include "base/error.h"

namespace godwit::kernels::dispatch_test {
namespace {

using testing::HasSubstr;

// Sets GODWIT_ISA for one test.
class Environment {
 public:
  explicit Environment(const char* value) {
    if (const char* old = std::getenv(kName)) old_ = old;
    value != nullptr ? setenv(kName, value, 1) : unsetenv(kName);
  }
  ~Environment() { old_ ? setenv(kName, old_->c_str(), 1) : unsetenv(kName); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  static constexpr const char* kName = "GODWIT_ISA";
  std::optional<std::string> old_;
};

const Isa& FirstPreferred() {
  for (const Isa& isa : AllIsas()) {
    if (isa.preferred()) return isa;
  }
  return AllIsas().back();
}

std::string MessageOf(std::string_view name, ErrorKind kind) {
  try {
    SelectIsa(name);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  ADD_FAILURE() << name << " was accepted";
  return "";
}

TEST(DispatchTest, ScalarIsLastAndAlwaysSupported) {
  ASSERT_FALSE(AllIsas().empty());
  EXPECT_EQ(AllIsas().back().name, "scalar");
  EXPECT_TRUE(AllIsas().back().supported());
}

TEST(DispatchTest, NamesAreUniqueAndTablesComplete) {
  std::set<std::string_view> names;
  for (const Isa& isa : AllIsas()) {
    EXPECT_TRUE(names.insert(isa.name).second) << isa.name;
    EXPECT_FALSE(isa.description.empty());
    // A table is a struct of pointers and one number. No pointer may be null.
    using Pointer = void (*)();
    constexpr size_t kBytes = offsetof(KernelTable, product_bytes);
    static_assert(kBytes % sizeof(Pointer) == 0);
    const auto* pointers = reinterpret_cast<const char*>(isa.table);
    for (size_t at = 0; at < kBytes; at += sizeof(Pointer)) {
      Pointer pointer;
      std::memcpy(&pointer, pointers + at, sizeof(pointer));
      EXPECT_NE(pointer, nullptr) << isa.name << " at byte " << at;
    }
  }
}

TEST(DispatchTest, AutoIsTheFirstPreferred) {
  const Environment environment(nullptr);
  EXPECT_EQ(&SelectIsa(""), &FirstPreferred());
  EXPECT_EQ(&SelectIsa("auto"), &FirstPreferred());
}

TEST(DispatchTest, TheEnvironmentDecidesForAutoOnly) {
  const Environment environment("scalar");
  EXPECT_EQ(SelectIsa("").name, "scalar");
  EXPECT_EQ(SelectIsa("auto").name, "scalar");
  EXPECT_EQ(&SelectIsa(FirstPreferred().name), &FirstPreferred());
}

TEST(DispatchTest, TheEnvironmentMaySayAuto) {
  for (const char* value : {"", "auto"}) {
    const Environment environment(value);
    EXPECT_EQ(&SelectIsa(""), &FirstPreferred());
  }
}

TEST(DispatchTest, NamesSelect) {
  for (const Isa& isa : AllIsas()) {
    if (!isa.supported()) continue;
    EXPECT_EQ(&SelectIsa(isa.name), &isa);
  }
}

TEST(DispatchTest, AnUnknownNameListsTheKnownOnes) {
  const std::string message = MessageOf("avx1024", ErrorKind::kInput);
  EXPECT_THAT(message, HasSubstr("avx1024"));
  EXPECT_THAT(message, HasSubstr("auto"));
  for (const Isa& isa : AllIsas()) EXPECT_THAT(message, HasSubstr(std::string(isa.name)));
}

TEST(DispatchTest, AnUnknownNameInTheEnvironmentNamesTheVariable) {
  const Environment environment("sse9");
  const std::string message = MessageOf("", ErrorKind::kInput);
  EXPECT_THAT(message, HasSubstr("GODWIT_ISA"));
  EXPECT_THAT(message, HasSubstr("sse9"));
}

TEST(DispatchTest, MissingListsAllThatAnIsaNeedsAndTheMachineLacks) {
  constexpr CpuFeature kFirst[] = {{"here", [] { return true; }}, {"one", [] { return false; }}};
  constexpr CpuFeature kSecond[] = {{"two", [] { return false; }}};
  const Isa isa{"x", "", nullptr, nullptr, {kFirst, kSecond}};
  EXPECT_EQ(isa.Missing(), "one, two");
  EXPECT_FALSE(isa.supported());
  EXPECT_TRUE((Isa{"y", "", nullptr, nullptr, {std::span(kFirst, 1)}}.supported()));
}

TEST(DispatchTest, SlowInstructionSetIsSupportedButNotPreferred) {
  constexpr CpuFeature kHere[] = {{"gone", [] { return false; }}, {"here", [] { return true; }}};
  const Isa slow{.name = "x", .slow_with = kHere};
  EXPECT_TRUE(slow.supported());
  EXPECT_FALSE(slow.preferred());
  const Isa fast{.name = "y", .slow_with = std::span(kHere, 1)};
  EXPECT_TRUE(fast.preferred());
  const Isa missing{.name = "z", .needs = {std::span(kHere, 1)}};
  EXPECT_FALSE(missing.preferred());
}

TEST(DispatchTest, AnUnsupportedNameSaysWhatIsMissing) {
  for (const Isa& isa : AllIsas()) {
    if (isa.supported()) continue;
    const std::string message = MessageOf(isa.name, ErrorKind::kUnsupported);
    EXPECT_THAT(message, HasSubstr(std::string(isa.name)));
    EXPECT_NE(isa.Missing(), "");
    EXPECT_THAT(message, HasSubstr("lacks " + isa.Missing()));
    EXPECT_THAT(message, HasSubstr(std::string(FirstPreferred().name)));
    return;
  }
  GTEST_SKIP() << "notice: this machine supports every instruction set of the build";
}

}  // namespace
}  // namespace godwit::kernels::dispatch_test
