// The main function of every test program. It is GoogleTest's, and also writes to the file that
// GODWIT_TEST_REPORT names, if any. The file lists the tests that will run, then the result of
// each. tools/test_report thereby counts tests that a dead process did not reach.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace {

class Report : public testing::EmptyTestEventListener {
 public:
  explicit Report(const char* path) : file_(path) {}

 private:
  void OnTestProgramStart(const testing::UnitTest& program) override {
    for (int i = 0; i < program.total_test_suite_count(); ++i) {
      const testing::TestSuite& suite = *program.GetTestSuite(i);
      for (int j = 0; j < suite.total_test_count(); ++j) {
        if (suite.GetTestInfo(j)->should_run()) Write("plan", *suite.GetTestInfo(j));
      }
    }
  }
  void OnTestStart(const testing::TestInfo& test) override { Write("run", test); }
  void OnTestEnd(const testing::TestInfo& test) override {
    const testing::TestResult& result = *test.result();
    Write(result.Failed() ? "failed" : result.Skipped() ? "skipped" : "passed", test);
  }

  void Write(const char* what, const testing::TestInfo& test) {
    file_ << what << ' ' << test.test_suite_name() << '.' << test.name() << ' '
          << test.result()->elapsed_time() << std::endl;
  }

  std::ofstream file_;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (const char* path = std::getenv("GODWIT_TEST_REPORT")) {
    testing::UnitTest::GetInstance()->listeners().Append(new Report(path));  // the listeners own it
  }
  return RUN_ALL_TESTS();
}
