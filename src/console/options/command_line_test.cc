#include "console/options/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "godwit/error.h"

namespace godwit::console::command_line_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CommandLineTest : public testing::Test {
 protected:
  CommandLineTest() {
    line_.Add({"-p,--prompt", "TEXT", "text"}, prompt_);
    line_.Add({"-f,--file", "FILE", "file"}, file_);
    line_.AddInt({"-n,--predict", "N", "number"}, predict_, -1);
    line_.AddInt({"-ub,--ubatch-size", "N", "chunk"}, chunk_, 1);
    line_.Add({"--temp,--temperature", "T", "heat"}, temp_);
    line_.Add({"-r,--stop", "TEXT", "stop"}, stop_);
    line_.Add({"--json", "", "json"}, json_);
    line_.Exclusive({"--prompt", "--file"});
  }
  ~CommandLineTest() override {
    for (const char* name : {"GODWIT_TEMP", "GODWIT_TEMPERATURE", "GODWIT_PROMPT", "GODWIT_JSON"}) {
      unsetenv(name);
    }
  }

  void Parse(const std::vector<std::string>& arguments) { line_.Parse(arguments); }

  std::string Refusal(const std::vector<std::string>& arguments) {
    try {
      line_.Parse(arguments);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      return error.what();
    }
    return "not refused";
  }

  CommandLine line_{"run", "[flags]", "Runs."};
  std::optional<std::string> prompt_, file_;
  int64_t predict_ = -1;
  int chunk_ = 512;
  float temp_ = 0.8f;
  std::vector<std::string> stop_;
  bool json_ = false;
};

TEST_F(CommandLineTest, KeepsDefaults) {
  Parse({});
  EXPECT_EQ(prompt_, std::nullopt);
  EXPECT_EQ(predict_, -1);
  EXPECT_EQ(temp_, 0.8f);
}

TEST_F(CommandLineTest, ReadsEveryNotation) {
  Parse({"-p", "", "-n5", "-ub", "64", "--temp=0.25", "--json", "-r", "a", "--stop", "-b"});
  EXPECT_EQ(prompt_, "");
  EXPECT_EQ(predict_, 5);
  EXPECT_EQ(chunk_, 64);
  EXPECT_EQ(temp_, 0.25f);
  EXPECT_THAT(stop_, ElementsAre("a", "-b"));
  EXPECT_TRUE(json_);
}

TEST_F(CommandLineTest, TakesAFlagForAValueBehindEqualsOnly) {
  EXPECT_EQ(Refusal({"-p", "--temp"}),
            "-p needs a value, found the flag --temp (write -p=--temp if that is the value)");
  Parse({"-p=--json", "-n", "-1"});
  EXPECT_EQ(prompt_, "--json");
  EXPECT_FALSE(json_);
}

TEST_F(CommandLineTest, TakesStrangeValuesLiterally) {
  for (const std::string prompt : {"{}", "[1,2]", "'quoted'", "--", "%%", "a\nb", "="}) {
    Parse({"--prompt", prompt});
    EXPECT_EQ(prompt_, prompt);
  }
}

TEST_F(CommandLineTest, OneFlagHasOneValue) {
  EXPECT_EQ(
      Refusal({"-n", "1", "--predict", "2"}),
      "-n \"1\" and --predict \"2\" contradict each other: they are one flag, which takes one "
      "value");
  EXPECT_THAT(Refusal({"--json", "--json=0"}), HasSubstr("--json \"1\" and --json \"0\""));
  EXPECT_LT(Refusal({"-p", std::string(10000, 'x'), "-p", ""}).size(), 200);
  Parse({"-n", "2", "--predict=2", "--json", "--json=1"});
  EXPECT_EQ(predict_, 2);
  EXPECT_TRUE(json_);
}

TEST_F(CommandLineTest, OneFlagHasOneVariable) {
  setenv("GODWIT_TEMP", "0.5", 1);
  setenv("GODWIT_TEMPERATURE", "0.6", 1);
  EXPECT_THAT(Refusal({}), HasSubstr("GODWIT_TEMP \"0.5\" and GODWIT_TEMPERATURE \"0.6\""));
  setenv("GODWIT_TEMPERATURE", "0.5", 1);
  Parse({});
  EXPECT_EQ(temp_, 0.5f);
}

TEST_F(CommandLineTest, AListTakesWhatAShellMakesOfAPattern) {
  std::vector<std::string> files;
  line_.Add({.names = "--files", .value = "FILE", .help = "", .takes_list = true}, files);
  Parse({"--files", "a", "b", "-", "-n", "1", "--files", "c"});
  EXPECT_THAT(files, ElementsAre("a", "b", "-", "c"));
  EXPECT_THAT(Refusal({"--files=a", "b"}), HasSubstr("unexpected argument \"b\""));
  EXPECT_THAT(Refusal({"--stop", "a", "b"}), HasSubstr("unexpected argument \"b\""));
}

TEST_F(CommandLineTest, RefusesWhatDoesNothing) {
  line_.Needs("--temperature", {"--json", "--stop"});
  EXPECT_EQ(Refusal({"--temp", "1"}), "--temp has no effect without --json or --stop");
  Parse({"--temp", "1", "-r", "x"});
  setenv("GODWIT_TEMP", "0.5", 1);
  Parse({});  // it waits there for commands that need it
  setenv("GODWIT_JSON", "1", 1);
  Parse({"--temp", "1"});
}

TEST_F(CommandLineTest, CommandLineWinsOverEnvironment) {
  setenv("GODWIT_TEMP", "0.5", 1);
  setenv("GODWIT_JSON", "1", 1);
  Parse({});
  EXPECT_EQ(temp_, 0.5f);
  EXPECT_TRUE(json_);
  Parse({"--temperature", "0.1"});
  EXPECT_EQ(temp_, 0.1f);
}

TEST_F(CommandLineTest, EveryLongNameIsAVariable) {
  setenv("GODWIT_TEMPERATURE", "0.5", 1);
  Parse({});
  EXPECT_EQ(temp_, 0.5f);
}

TEST_F(CommandLineTest, ExclusiveFlagOverridesVariable) {
  setenv("GODWIT_PROMPT", "hello", 1);
  Parse({"-f", "file"});
  EXPECT_EQ(prompt_, std::nullopt);
}

TEST_F(CommandLineTest, RefusesWithTheNameOfTheFlag) {
  EXPECT_EQ(Refusal({"-n", "x"}), "-n: expected a whole number of at least -1, found \"x\"");
  EXPECT_EQ(Refusal({"--predict=x"}),
            "--predict: expected a whole number of at least -1, found \"x\"");
  EXPECT_EQ(Refusal({"-p", "a", "--file", "b"}), "-p and --file exclude each other");
  EXPECT_EQ(Refusal({"-n"}), "-n needs a value");
  EXPECT_EQ(Refusal({"-p", "x", "-ub"}), "-ub needs a value");
  setenv("GODWIT_TEMP", "warm", 1);
  EXPECT_EQ(Refusal({}), "GODWIT_TEMP: expected a number, found \"warm\"");
}

TEST_F(CommandLineTest, SuggestsTheNearestFlag) {
  EXPECT_THAT(Refusal({"--promt", "x"}), HasSubstr("did you mean --prompt?"));
  EXPECT_THAT(Refusal({"--tmep=1"}), HasSubstr("did you mean --temp?"));
  EXPECT_THAT(Refusal({"--TEMP", "1"}), HasSubstr("did you mean --temp?"));
  EXPECT_THAT(Refusal({"--zebra"}), HasSubstr("see godwit run --help"));
  EXPECT_THAT(Refusal({"hello"}), HasSubstr("unexpected argument \"hello\""));
  EXPECT_THAT(Refusal({"--", "hello"}), HasSubstr("unexpected argument \"--\""));
}

TEST_F(CommandLineTest, AnOperandStandsAnywhereAndOnce) {
  std::string operand;
  line_.Operand(operand);
  Parse({"a:b", "-n", "5"});
  EXPECT_EQ(operand, "a:b");
  Parse({"-n", "6", "c", "--json"});
  EXPECT_EQ(operand, "c");
  EXPECT_EQ(predict_, 6);
  EXPECT_EQ(Refusal({"-n", "6"}), "an argument is missing; usage: godwit run [flags]");
  EXPECT_THAT(Refusal({"a", "b"}), HasSubstr("unexpected argument \"b\""));
  EXPECT_THAT(Refusal({"a", "--zebra"}), HasSubstr("unknown flag"));
}

TEST_F(CommandLineTest, SuggestsTheNearestChoice) {
  const auto refuse = [](const std::string&) { throw Error(ErrorKind::kInput, "expected others"); };
  line_.Add({.names = "--type", .value = "TYPE", .help = "", .choices = {"f32", "bf16"}}, refuse);
  line_.Add({.names = "--kv", .value = "SPEC", .help = "", .choices = {"sinks:S+W"}}, refuse);
  EXPECT_EQ(Refusal({"--type", "BF16"}), "--type: expected others; did you mean bf16?");
  EXPECT_EQ(Refusal({"--type", "f32,bf6"}), "--type: expected others; did you mean bf16?");
  EXPECT_EQ(Refusal({"--type", "zebra"}), "--type: expected others");
  EXPECT_EQ(Refusal({"--kv", "sink:4+60"}), "--kv: expected others; did you mean sinks?");
  EXPECT_EQ(Refusal({"--kv", "sinks:4"}), "--kv: expected others");
}

TEST_F(CommandLineTest, SaysWhatTakesThePlaceOfForeignFlags) {
  EXPECT_EQ(Refusal({"-ngl", "99"}),
            "there is no \"-ngl\": models run on the processor; GPUs are not supported");
  EXPECT_THAT(Refusal({"-b=64"}), HasSubstr("-ub sets"));
  // Only flags of this verb are named.
  EXPECT_THAT(Refusal({"--cache-type-k", "f16"}), HasSubstr("see godwit run --help"));
}

TEST_F(CommandLineTest, ThePageTellsOfEveryFlag) {
  line_.AddInt({.names = "--first", .value = "N", .help = "only some"}, chunk_, 1000);
  try {
    line_.Parse({{"-n", "x", "-h"}});
    FAIL() << "no help";
  } catch (const HelpRequest& request) {
    std::string text;
    for (const FlagPage& flag : request.page.flags) {
      text += flag.Usage() + ": " + flag.Text() + "\n";
    }
    EXPECT_EQ(text,
              "-p, --prompt TEXT: text\n"
              "-f, --file FILE: file\n"
              "-n, --predict N: number [default: -1]\n"
              "-ub, --ubatch-size N: chunk [default: 512]\n"
              "--temp, --temperature T: heat [default: 0.8]\n"
              "-r, --stop TEXT: stop\n"
              "--json: json\n"
              "--first N: only some\n"
              "-q, --quiet: print only the result, errors, and notices of dropped text\n"
              "-h, --help: show this help\n");
  }
}

TEST_F(CommandLineTest, NamesTheCommandsThatDraw) {
  EXPECT_THAT(Refusal({"--plot", "x.svg"}), HasSubstr("unknown flag \"--plot\""));
  line_.RefusePlot();
  EXPECT_EQ(
      Refusal({"--plot", "x.svg"}),
      "--plot: there is no such flag; draw a picture of the JSON output: godwit run ... --json "
      ">r.json, then tools/plot r.json -o r.svg");
  EXPECT_THAT(Refusal({"--plot=x.svg"}), HasSubstr("tools/plot"));
}

}  // namespace
}  // namespace godwit::console::command_line_test
