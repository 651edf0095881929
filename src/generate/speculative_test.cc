#include "generate/speculative.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>

#include "base/rng.h"
#include "base/test_support.h"
#include "generate/autoregressive.h"
#include "generate/recycled_drafts.h"
#include "generate/suffix_drafts.h"
#include "kernels/dispatch.h"
#include "tests/drive_strategy.h"
#include "tests/fake_model.h"
#include "tests/scripted_drafts.h"

namespace godwit::speculative_test {
namespace {

constexpr int32_t kVocab = 40;

// Texts that repeat themselves: only the last bit of a position / 50 counts.
int32_t Circle(int32_t token, int64_t position) {
  return static_cast<int32_t>((7 * token + 3 + (position / 50 % 2)) % kVocab);
}

class SpeculativeTest : public testing::Test {
 protected:
  static Sequence NewSequence(const SamplerOptions& sampler, uint64_t id = 0,
                              const std::string& kv = "dense", int64_t context = 4000) {
    return {.tokens = {3, 1, 4, 1, 5, 9, 2, 6, 5},
            .cache = MakeTextCache(FakeModel::Geometry(),
                                   {.spec = kv, .kv_type = DType::kF32, .context = context}),
            .sampler = Sampler(sampler, kVocab),
            .id = id};
  }

  static std::vector<std::unique_ptr<DraftSource>> Ngram() {
    std::vector<std::unique_ptr<DraftSource>> sources;
    sources.push_back(std::make_unique<SuffixDrafts>());
    sources.push_back(std::make_unique<RecycledDrafts>(kVocab));
    return sources;
  }
  static std::vector<std::unique_ptr<DraftSource>> Only(std::unique_ptr<DraftSource> source) {
    std::vector<std::unique_ptr<DraftSource>> sources;
    sources.push_back(std::move(source));
    return sources;
  }

  Drive On(const LanguageModel& model) {
    return {.model = model, .exec = {.pool = pool_, .kernels = kernels_, .workspace = workspace_}};
  }

  std::vector<int32_t> Plain(const LanguageModel& model, Sequence sequence, int64_t tokens) {
    Autoregressive strategy;
    On(model).Continue(sequence, strategy, tokens);
    return sequence.tokens;
  }

  ThreadPool pool_{1};
  const kernels::KernelTable& kernels_ = *kernels::SelectIsa("").table;
  Workspace workspace_;
};

const SamplerOptions kSamplers[] = {
    {.temperature = 0},
    {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 1},
    {.temperature = 1.3f, .top_k = 5, .seed = 2},
    {.repeat_last_n = 64, .repeat_penalty = 1.4f, .temperature = 1, .min_p = 0.1f, .seed = 3},
    {.repeat_last_n = 16, .presence_penalty = 1, .frequency_penalty = 1, .eta = 1e-3f, .seed = 4},
};

TEST_F(SpeculativeTest, TheTextIsThatOfOneTokenAfterTheOther) {
  for (const SamplerOptions& sampler : kSamplers) {
    FakeModel model(kVocab, Circle);
    model.other_logits = sampler.temperature == 0 ? -20 : -2;
    const auto plain = Plain(model, NewSequence(sampler), 1500);
    for (const double right : {0.0, 0.5, 1.0}) {
      Sequence sequence = NewSequence(sampler);
      Speculative strategy(Only(std::make_unique<ScriptedDrafts>(kVocab, plain, right)), NoTime);
      Drive drive = On(model);
      drive.Continue(sequence, strategy, 1400);
      ASSERT_LE(sequence.tokens.size(), plain.size());
      EXPECT_TRUE(
          std::ranges::equal(sequence.tokens, std::span(plain).first(sequence.tokens.size())));
      EXPECT_EQ(sequence.pending(), 1);
      const int64_t accepted = strategy.stats().accepted[0].draft_tokens;
      EXPECT_EQ(accepted + drive.steps + 1, std::ssize(sequence.tokens) - 9);
      EXPECT_GE(accepted, right == 1 ? 900 : right == 0.5 ? 400 : 0);
      EXPECT_TRUE(right > 0 || accepted == 0);
    }
    Sequence sequence = NewSequence(sampler);
    Speculative strategy(Ngram(), NoTime);
    On(model).Continue(sequence, strategy, 1400);
    EXPECT_TRUE(
        std::ranges::equal(sequence.tokens, std::span(plain).first(sequence.tokens.size())));
  }
}

TEST_F(SpeculativeTest, RepeatedTextIsDrafted) {
  const FakeModel model(kVocab, Circle);
  Sequence sequence = NewSequence({.temperature = 0});
  Speculative strategy(Ngram(), NoTime);
  Drive drive = On(model);
  drive.Continue(sequence, strategy, 2000);
  EXPECT_LT(drive.steps, 400);
  EXPECT_GT(strategy.stats().accepted[0].draft_tokens, 1000);  // from the text's earlier tokens
  EXPECT_EQ(strategy.stats().steps, drive.steps);
  EXPECT_EQ(strategy.stats().draft_tokens, drive.rows - drive.steps);
}

// If a row costs a step, no draft token pays. If rows are free, all likely ones do.
TEST_F(SpeculativeTest, TreesGrowWhileTheyPay) {
  FakeModel model(kVocab, Circle);
  const auto plain = Plain(model, NewSequence({.temperature = 0}), 1500);
  const auto rows_a_step = [&](double right, std::function<double(int64_t)> ms) {
    Sequence sequence = NewSequence({.temperature = 0});
    Speculative strategy(Only(std::make_unique<ScriptedDrafts>(kVocab, plain, right)), NoTime);
    Drive drive = On(model);
    drive.ms = std::move(ms);
    drive.Continue(sequence, strategy, 700);  // it learns how often the source is right
    drive.steps = drive.rows = 0;
    drive.Continue(sequence, strategy, 700);
    return static_cast<double>(drive.rows) / static_cast<double>(drive.steps);
  };
  const auto linear = [](int64_t rows) { return static_cast<double>(rows); };
  const auto four_are_free = [](int64_t rows) {
    return rows <= 4 ? 1.0 : 0.3 * static_cast<double>(rows);
  };
  EXPECT_LT(rows_a_step(0.9, linear), 1.1);
  EXPECT_LT(rows_a_step(0.01, [](int64_t) { return 1.0; }), 6) << "hardly any is likely";
  const double few = rows_a_step(0.9, four_are_free);
  EXPECT_GT(few, 2);
  EXPECT_LE(few, 4.5);
  EXPECT_GT(rows_a_step(0.9, [](int64_t) { return 1.0; }), 12);
}

TEST_F(SpeculativeTest, PromptTimeDoesNotCountAgainstDrafts) {
  FakeModel model(kVocab, Circle);
  const auto plain = Plain(model, NewSequence({.temperature = 0}), 300);
  Sequence sequence = NewSequence({.temperature = 0});
  Speculative strategy(Only(std::make_unique<ScriptedDrafts>(kVocab, plain, 1)), NoTime);
  Drive drive = On(model);
  drive.ms = [](int64_t) { return 50.0; };
  drive.Step(sequence, strategy);
  drive.ms = [](int64_t) { return 1.0; };
  drive.Continue(sequence, strategy, 200);
  EXPECT_LT(drive.steps, 60);
}

// A source that costs more than it saves is asked in few steps.
TEST_F(SpeculativeTest, SourcesThatCostMoreThanTheySaveRest) {
  static double now;
  class Slow : public ScriptedDrafts {
   public:
    using ScriptedDrafts::ScriptedDrafts;
    int64_t asked = 0;
    void ContinueFrom(const Sequence&, const Outcome& outcome, int64_t row) override {
      EXPECT_LT(row, outcome.hidden.rows);
      now += 0.5;  // a step takes 1
      ++asked;
    }
  };
  const FakeModel model(kVocab, Circle);
  const auto plain = Plain(model, NewSequence({.temperature = 0}, 0, "dense", 6000), 5500);
  for (const double right : {0.1, 1.0}) {
    auto slow = std::make_unique<Slow>(kVocab, plain, right);
    const Slow& source = *slow;
    Sequence sequence = NewSequence({.temperature = 0}, 0, "dense", 6000);
    now = 0;
    Speculative strategy(Only(std::move(slow)), [] { return now; });
    Drive drive = On(model);
    drive.Continue(sequence, strategy, 5000);
    EXPECT_TRUE(
        std::ranges::equal(sequence.tokens, std::span(plain).first(sequence.tokens.size())));
    if (right == 1) {
      EXPECT_GE(source.asked, drive.steps - drive.steps / 64) << "but where a step is plain";
    } else {
      EXPECT_LT(source.asked, drive.steps / 5);
    }
  }
}

// A draft token that a cheaper source offers as well was not worth the price.
TEST_F(SpeculativeTest, RELEASE_DearerOfTwoEqualSourcesRests) {
  static double now;
  class Slow : public ScriptedDrafts {
   public:
    using ScriptedDrafts::ScriptedDrafts;
    int64_t asked = 0;
    void ContinueFrom(const Sequence&, const Outcome&, int64_t) override {
      now += 0.2;
      ++asked;
    }
  };
  const FakeModel model(kVocab, Circle);
  const auto plain = Plain(model, NewSequence({.temperature = 0}, 0, "dense", 30'000), 29'000);
  auto slow = std::make_unique<Slow>(kVocab, plain, 1);
  const Slow& source = *slow;
  auto sources = Only(std::move(slow));
  sources.push_back(std::make_unique<ScriptedDrafts>(kVocab, plain, 1));
  Sequence sequence = NewSequence({.temperature = 0}, 0, "dense", 30'000);
  now = 0;
  Speculative strategy(std::move(sources), [] { return now; });
  Drive drive = On(model);
  drive.Continue(sequence, strategy, 28'000);
  EXPECT_GT(drive.steps, 800);
  EXPECT_LT(source.asked, drive.steps / 2);
  EXPECT_GT(strategy.stats().accepted[1].draft_tokens, 10'000);
}

TEST_F(SpeculativeTest, KeepsWithinTheContextAndTheRowsThatItIsGiven) {
  const FakeModel model(kVocab, Circle);
  const auto plain = Plain(model, NewSequence({.temperature = 0}), 300);
  Sequence sequence = NewSequence({.temperature = 0}, 0, "dense", 100);
  Speculative strategy(Only(std::make_unique<ScriptedDrafts>(kVocab, plain, 1)), NoTime);
  Drive drive = On(model);
  while (sequence.cache->length() < 100) drive.Step(sequence, strategy);
  EXPECT_EQ(sequence.cache->length(), 100);
  EXPECT_TRUE(std::ranges::equal(sequence.tokens, std::span(plain).first(sequence.tokens.size())));

  Sequence another = NewSequence({.temperature = 0});
  Speculative other(Only(std::make_unique<ScriptedDrafts>(kVocab, plain, 1)), NoTime);
  drive.Continue(another, other, 100);
  for (const int64_t most : {1, 2, 5}) {
    EXPECT_LE(std::ssize(other.Propose(another, most).segment.tokens), most);
  }
}

// A tree's path under sinks that evict: evicted keys are not needed again.
TEST_F(SpeculativeTest, WorksWithSinks) {
  const FakeModel model(kVocab, Circle);
  for (const std::string kv : {"sinks:4+60", "sinks:2+128"}) {
    Sequence sequence = NewSequence({.temperature = 0}, 0, kv);
    const auto plain = Plain(model, NewSequence({.temperature = 0}, 0, kv), 1000);
    Speculative strategy(Only(std::make_unique<ScriptedDrafts>(kVocab, plain, 0.8)), NoTime);
    On(model).Continue(sequence, strategy, 900);
    EXPECT_TRUE(
        std::ranges::equal(sequence.tokens, std::span(plain).first(sequence.tokens.size())));
    EXPECT_GT(strategy.stats().accepted[0].draft_tokens, 300);
  }
}

// A broken model ends the text where it is, with the tokens that the path has so far.
TEST_F(SpeculativeTest, AnErrorOnAPathLeavesNothingPending) {
  class Broken : public FakeModel {
   public:
    using FakeModel::FakeModel;
    int32_t bad = -1;
    void Logits(const Exec& exec, MatrixView<const float> hidden,
                MatrixView<float> logits) const override {
      FakeModel::Logits(exec, hidden, logits);
      for (int64_t row = 0; row < hidden.rows; ++row) {
        if (static_cast<int32_t>(hidden.Row(row)[0]) == bad) logits.Row(row)[0] = NAN;
      }
    }
  };
  Broken model(kVocab, [](int32_t token, int64_t) { return (token + 1) % 40; });
  const auto plain = Plain(model, NewSequence({.temperature = 0}), 60);
  Sequence sequence = NewSequence({.temperature = 0});
  Speculative strategy(Only(std::make_unique<ScriptedDrafts>(kVocab, plain, 1, 0.9)), NoTime);
  Drive drive = On(model);
  model.bad = 2;  // the 37th token
  const Error error = ErrorOf([&] { drive.Continue(sequence, strategy, 60); });
  EXPECT_EQ(error.kind(), ErrorKind::kFormat);
  EXPECT_EQ(sequence.pending(), 0);
  EXPECT_GT(strategy.stats().accepted[0].draft_tokens, 10);
  EXPECT_EQ(sequence.tokens.back(), 1);
}

// --- sampling: the distribution, not only the same draws ---

// The first two tokens after the prompt, over many seeds, against the model's distribution.
struct Trials {
  std::map<std::pair<int32_t, int32_t>, double> counts;
  double total = 0;
  void Add(int32_t first, int32_t second) {
    ++counts[{first, second}];
    ++total;
  }
  // Chi-square of counts against probabilities [kVocab][kVocab]. Cells that expect less than 5
  // share one.
  double ChiSquare(const std::vector<std::vector<double>>& expected, int& cells) const {
    double chi = 0, rare_expected = 0, rare_found = 0;
    cells = 0;
    const auto add = [&](double found, double expects) {
      chi += (found - expects) * (found - expects) / expects;
      ++cells;
    };
    for (size_t a = 0; a < expected.size(); ++a) {
      for (size_t b = 0; b < expected.size(); ++b) {
        const auto at = counts.find({static_cast<int32_t>(a), static_cast<int32_t>(b)});
        const double found = at == counts.end() ? 0 : at->second, expects = expected[a][b] * total;
        if (expects >= 5) {
          add(found, expects);
        } else {
          rare_expected += expects;
          rare_found += found;
        }
      }
    }
    if (rare_expected > 0) add(rare_found, rare_expected);
    return chi;
  }
};

// Six tokens with logits that depend on the last one.
class Dice : public FakeModel {
 public:
  Dice() : FakeModel(6, [](int32_t token, int64_t) { return token; }) {}
  static float LogitOf(int64_t last, int64_t next) {
    return static_cast<float>(((last * 5 + next * 3) % 7)) * 0.4f;
  }
  void Logits(const Exec&, MatrixView<const float> hidden,
              MatrixView<float> logits) const override {
    for (int64_t row = 0; row < hidden.rows; ++row) {
      for (int64_t t = 0; t < 6; ++t) {
        logits.Row(row)[t] = LogitOf(static_cast<int64_t>(hidden.Row(row)[0]), t);
      }
    }
  }
};

// A fixed tree: the same tokens behind every node.
class Everything : public DraftSource {
 public:
  std::string_view name() const override { return "everything"; }
  std::span<const double> Priors() const override { return priors_; }
  void Follow(std::span<const int32_t> /*text*/) override {}
  void Offer(std::span<const int32_t> /*text*/, std::span<const DraftNode> tree, int32_t node,
             std::vector<DraftOffer>& offers) override {
    if (tree[node].depth > 1) return;
    for (int32_t token : {4, 1, 3}) offers.push_back({token, 0});
  }

 private:
  std::vector<double> priors_ = {0.3};
};

std::vector<std::vector<double>> TwoTokensOf(const SamplerOptions& options, int32_t last) {
  std::vector<std::vector<double>> expected(6, std::vector<double>(6, 0));
  Sampler sampler(options, 6);
  const auto distribution = [&](const std::vector<int32_t>& text) {
    std::vector<float> logits;
    for (int64_t t = 0; t < 6; ++t) logits.push_back(Dice::LogitOf(text.back(), t));
    std::vector<double> p(6, 0);
    for (const Candidate& c : sampler.Distribution(logits, text)) {
      p[c.token] = c.probability;
    }
    return p;
  };
  const auto first = distribution({2, last});
  for (int32_t a = 0; a < 6; ++a) {
    if (first[a] == 0) continue;
    const auto second = distribution({2, last, a});
    for (size_t b = 0; b < 6; ++b) expected[a][b] = first[a] * second[b];
  }
  return expected;
}

// The 0.999 quantile of chi-square, after Wilson and Hilferty.
double Largest(int cells) {
  const double k = cells - 1, z = 3.09;
  const double root = 1 - 2 / (9 * k) + z * std::sqrt(2 / (9 * k));
  return k * root * root * root;
}

TEST_F(SpeculativeTest, RELEASE_TwoTokensAreDrawnAsTheModelAndTheSamplerHaveThem) {
  const Dice model;
  for (SamplerOptions options : {
           SamplerOptions{.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0},
           SamplerOptions{.temperature = 0.7f, .top_k = 4, .top_p = 1, .min_p = 0},
           SamplerOptions{.temperature = 1, .top_k = 0, .top_p = 0.8f, .min_p = 0},
           SamplerOptions{.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0.2f},
           SamplerOptions{.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .eta = 0.1f},
           SamplerOptions{.repeat_last_n = 8,
           .repeat_penalty = 1.5f,
           .temperature = 1,
           .top_k = 0,
           .top_p = 1,
           .min_p = 0},
       }) {
    options.seed = 11;
    Trials ours;
    int64_t guessed = 0;
    Speculative strategy(Only(std::make_unique<Everything>()), NoTime);
    const PolicyOptions text{.kv_type = DType::kF32, .context = 20};
    const auto first = MakeTextCache(FakeModel::Geometry(), text);
    first->Reserve(1);  // keeps the others' memory in place
    for (uint64_t trial = 0; trial < 20'000; ++trial) {
      Sequence sequence{
          .tokens = {2, 5},
          .cache = MakeTextCache(FakeModel::Geometry(), text, first->cache().shared_pool()),
          .sampler = Sampler(options, 6),
          .id = trial};
      Drive drive = On(model);
      drive.chunk = 1;  // the prompt's last token is then the root of a tree
      drive.Step(sequence, strategy);
      drive.Continue(sequence, strategy, 2);
      ours.Add(sequence.tokens[2], sequence.tokens[3]);
      guessed += drive.steps == 1 ? 1 : 0;
    }
    int cells = 0;
    const double chi = ours.ChiSquare(TwoTokensOf(options, 5), cells);
    EXPECT_LT(chi, Largest(cells));
    EXPECT_GT(cells, 8);
    EXPECT_GT(guessed, 3000) << "both in one step";
  }
}

// The published rule: every path of the tree draws for itself, and the one that agrees longest
// wins.
TEST_F(SpeculativeTest, ThePublishedRuleDrawsSomethingElse) {
  const SamplerOptions options{.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0};
  const auto expected = TwoTokensOf(options, 5);
  const auto draw = [](const std::vector<double>& p, double uniform) {
    size_t token = 0;
    for (double sum = p[0]; uniform >= sum && token + 1 < p.size(); sum += p[++token]) {
    }
    return static_cast<int32_t>(token);
  };
  std::vector<double> first(6, 0);
  for (size_t a = 0; a < 6; ++a) {
    for (const double p : expected[a]) first[a] += p;
  }
  Trials published;
  for (uint64_t trial = 0; trial < 20'000; ++trial) {
    int32_t token = -1, second = -1;
    size_t longest = 0;
    uint32_t draws = 0;
    for (const int32_t guess : {4, 1, 3}) {
      const int32_t a = draw(first, Uniform(12, trial, 0, draws++));
      std::vector<double> after = expected[a];
      for (double& p : after) p /= first[a];
      const int32_t b = draw(after, Uniform(12, trial, 1, draws++));
      const size_t agrees = a == guess ? 1 : 0;
      if (token >= 0 && agrees <= longest) continue;
      longest = agrees;
      token = a;
      second = b;
    }
    published.Add(token, second);
  }
  int cells = 0;
  const double chi = published.ChiSquare(expected, cells);
  EXPECT_GT(chi, 10 * Largest(cells));
}

}  // namespace
}  // namespace godwit::speculative_test
