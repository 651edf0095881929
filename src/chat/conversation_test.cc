#include "chat/conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "chat/thought_fields.h"

namespace godwit::chat::conversation_test {
namespace {

using testing::ElementsAreArray;

constexpr int32_t kEnd = 1000;     // "<e>", special
constexpr int32_t kPair = 2000;    // encoding prefers it to 'a', 'b'
constexpr int32_t kBroken = 3000;  // half a character

// A codec in which a token is a byte, except for those above. It counts the encoded bytes.
struct FakeCodec {
  int64_t encoded_bytes = 0;
  bool trim = false;  // the template trims answers, as real ones do

  std::string Render(std::span<const Message> messages, bool open = true) const {
    std::string text;
    for (const Message& message : messages) {
      if (message.content == "refuse") throw std::runtime_error("refused");
      std::string content = message.content;
      if (trim && content.starts_with(' ')) content.erase(0, 1);
      text += message.role.substr(0, 1) + ":" + content + "<e>\n";
    }
    return open ? text + "a:" : text;
  }

  std::vector<int32_t> Encode(std::string_view text, int64_t limit_tokens = Conversation::kAny) {
    const size_t size = text.size();
    std::vector<int32_t> tokens;
    while (!text.empty() && std::ssize(tokens) <= limit_tokens) {
      const bool end = text.starts_with("<e>");
      const bool pair = text.starts_with("ab");
      tokens.push_back(end ? kEnd : pair ? kPair : text[0]);
      text.remove_prefix(end ? 3 : pair ? 2 : 1);
    }
    encoded_bytes += static_cast<int64_t>(size - text.size());
    return tokens;
  }

  static std::string Decode(std::span<const int32_t> tokens, bool skip_special) {
    std::string text;
    for (const int32_t token : tokens) {
      if (token == kEnd) {
        text += skip_special ? "" : "<e>";
      } else if (token == kPair) {
        text += "ab";
      } else if (token == kBroken) {
        text += "\uFFFD";
      } else {
        text += static_cast<char>(token);
      }
    }
    return text;
  }
};

class ConversationTest : public testing::Test {
 protected:
  ChatCodec Codec() {
    return {.render = [this](auto messages, bool open) { return fake_.Render(messages, open); },
            .encode = [this](auto text, int64_t most) { return fake_.Encode(text, most); },
            .decode = FakeCodec::Decode};
  }

  // The tokens of `text` as encoding would make them.
  std::vector<int32_t> Tokens(std::string_view text) { return FakeCodec().Encode(text); }

  FakeCodec fake_;
  Conversation chat_{Codec()};
};

std::vector<int32_t> Join(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST_F(ConversationTest, ATemplateIsToldOfEarlierThoughts) {
  ChatCodec codec = Codec();
  std::string fields;
  codec.render = [&](std::span<const Message> messages, bool open) {
    fields = messages.size() > 1 ? messages[1].fields : "";
    return fake_.Render(messages, open);
  };
  Conversation chat(codec);
  ASSERT_TRUE(chat.Ask("2?"));
  chat.Answer("Two.", Tokens("<think>Hm.</think>Two.<e>"), "Hm.");
  ASSERT_TRUE(chat.Ask("Sure?"));
  EXPECT_EQ(ThoughtIn(fields), "Hm.");
  EXPECT_EQ(FakeCodec::Decode(chat.prompt(), /*skip_special=*/false),
            "u:2?<e>\na:Two.<e>\nu:Sure?<e>\na:");
}

TEST_F(ConversationTest, TellsWhetherTheTemplateBeganAThought) {
  ASSERT_TRUE(chat_.Ask("hello"));
  EXPECT_FALSE(chat_.form().thought.open);
  ChatCodec codec = Codec();
  codec.render = [](auto, bool) { return std::string("q:hello<e>\n<think>\n"); };
  Conversation thoughtful(codec);
  ASSERT_TRUE(thoughtful.Ask("hello"));
  EXPECT_TRUE(thoughtful.form().thought.open);
}

TEST_F(ConversationTest, KeepsTheModelsOwnTokens) {
  chat_.Ask("hi");
  EXPECT_THAT(chat_.prompt(), ElementsAreArray(Tokens("u:hi<e>\na:")));
  chat_.Answer("ab", std::vector<int32_t>{'a', 'b', kEnd});
  chat_.Ask("more");
  const auto first = Join(Tokens("u:hi<e>\na:"), {'a', 'b', kEnd});
  EXPECT_THAT(chat_.prompt(), ElementsAreArray(Join(first, Tokens("\nu:more<e>\na:"))));
}

TEST_F(ConversationTest, EncodesOnlyWhatIsNew) {
  chat_.Ask(std::string(1000, 'x'));
  chat_.Answer("y", std::vector<int32_t>{'y', kEnd});
  fake_.encoded_bytes = 0;
  chat_.Ask("z");
  EXPECT_LT(fake_.encoded_bytes, 20);
}

TEST_F(ConversationTest, KnowsItsLastQuestion) {
  EXPECT_EQ(chat_.question_tokens(), 0);
  chat_.Ask("one");
  EXPECT_EQ(chat_.question_tokens(), std::ssize(chat_.prompt())) << "nothing stands before it";
  chat_.Answer("yes", Tokens("yes<e>"));
  const int64_t before = std::ssize(chat_.prompt());
  chat_.Ask("two");
  const int64_t question = chat_.question_tokens();
  EXPECT_EQ(question, std::ssize(chat_.prompt()) - before);
  chat_.Answer("no", Tokens("no<e>"));
  chat_.Retry();
  EXPECT_EQ(chat_.question_tokens(), question);
  chat_.Clear();
  EXPECT_EQ(chat_.question_tokens(), 0);
}

TEST_F(ConversationTest, AQuestionTooLongIsNotEncodedToItsEnd) {
  EXPECT_FALSE(chat_.Ask(std::string(1000, 'x'), 20));
  EXPECT_LT(fake_.encoded_bytes, 30);
  EXPECT_TRUE(chat_.messages().empty());
  EXPECT_TRUE(chat_.prompt().empty());

  EXPECT_TRUE(chat_.Ask("hi", 8));  // u:hi<e>\na: has 8 tokens
  for (const int32_t last : {kEnd, int32_t{'b'}}) {
    chat_.Answer("b", std::vector<int32_t>{last});
    const std::vector<int32_t> before(chat_.prompt().begin(), chat_.prompt().end());
    fake_.encoded_bytes = 0;
    const int64_t most = std::ssize(before) + 10;
    EXPECT_FALSE(chat_.Ask(std::string(1000, 'x'), most));
    EXPECT_LT(fake_.encoded_bytes, 30);
    EXPECT_THAT(chat_.prompt(), ElementsAreArray(before));
    EXPECT_TRUE(chat_.Ask("z", most));
  }
}

TEST_F(ConversationTest, ClosesAnAnswerThatWasCutShort) {
  chat_.Ask("hi");
  chat_.Answer("ab", std::vector<int32_t>{'a', 'b'});
  chat_.Ask("go on");
  const auto first = Join(Tokens("u:hi<e>\na:"), {'a', 'b'});
  EXPECT_THAT(chat_.prompt(), ElementsAreArray(Join(first, Tokens("<e>\nu:go on<e>\na:"))));
}

TEST_F(ConversationTest, EncodesAnewWhatTheTemplateChanged) {
  fake_.trim = true;
  chat_.Ask("hi");
  chat_.Answer(" ab", std::vector<int32_t>{' ', 'a', 'b', kEnd});
  chat_.Ask("more");
  EXPECT_THAT(chat_.prompt(), ElementsAreArray(Tokens("u:hi<e>\na:ab<e>\nu:more<e>\na:")));
}

TEST_F(ConversationTest, EncodesAnewWhatIsNotTheTextOfItsTokens) {
  chat_.Ask("hi");
  // The text ends before a stop string.
  chat_.Answer("x", std::vector<int32_t>{'x', 'S', 'T'});
  chat_.Ask("more");
  EXPECT_THAT(chat_.prompt(), ElementsAreArray(Tokens("u:hi<e>\na:x<e>\nu:more<e>\na:")));
}

TEST_F(ConversationTest, RetriesFromTheSamePrompt) {
  EXPECT_FALSE(chat_.Retry());
  chat_.Ask("hi");
  EXPECT_FALSE(chat_.Retry());
  chat_.Answer("ab", std::vector<int32_t>{'a', 'b', kEnd});
  chat_.Ask("more");
  const std::vector<int32_t> prompt(chat_.prompt().begin(), chat_.prompt().end());
  chat_.Answer("x", std::vector<int32_t>{'x', kEnd});
  EXPECT_TRUE(chat_.Retry());
  EXPECT_THAT(chat_.prompt(), ElementsAreArray(prompt));
  EXPECT_EQ(chat_.messages().size(), 3u);
}

TEST_F(ConversationTest, AMessageEndsWhereItsFrameDoes) {
  EXPECT_EQ(chat_.MessageEnd(9), 0);
  chat_.SetSystem("be");  // s:be<e>\n
  chat_.Ask("hi");        // u:hi<e>\n
  EXPECT_EQ(chat_.MessageEnd(0), 0);
  for (const int64_t tokens : {1, 3, 6}) EXPECT_EQ(chat_.MessageEnd(tokens), 6);
  for (const int64_t tokens : {7, 12}) EXPECT_EQ(chat_.MessageEnd(tokens), 12);
  EXPECT_EQ(chat_.MessageEnd(13), 12) << "not inside the opening of the answer";
  // An answer whose tokens differ from its encoding has no end here.
  chat_.Answer("ab", std::vector<int32_t>{'a', 'b', kEnd});
  chat_.Ask("more");
  EXPECT_EQ(chat_.MessageEnd(100), 12);
}

TEST_F(ConversationTest, UndoesTurnByTurn) {
  EXPECT_FALSE(chat_.Undo());
  chat_.Ask("one");
  chat_.Answer("ab", std::vector<int32_t>{'a', 'b', kEnd});
  chat_.Ask("two");
  EXPECT_TRUE(chat_.Undo());  // a question without an answer
  EXPECT_EQ(chat_.messages().size(), 2u);
  chat_.Ask("three");
  const auto first = Join(Tokens("u:one<e>\na:"), {'a', 'b', kEnd});
  EXPECT_THAT(chat_.prompt(), ElementsAreArray(Join(first, Tokens("\nu:three<e>\na:"))));
  chat_.Answer("c", std::vector<int32_t>{'c', kEnd});
  EXPECT_TRUE(chat_.Undo());
  EXPECT_TRUE(chat_.Undo());
  EXPECT_FALSE(chat_.Undo());
  chat_.Ask("four");
  EXPECT_THAT(chat_.prompt(), ElementsAreArray(Tokens("u:four<e>\na:")));
}

TEST_F(ConversationTest, RetriesAndUndoesAfterEncodingAnew) {
  fake_.trim = true;
  chat_.Ask("one");
  chat_.Answer(" x", std::vector<int32_t>{' ', 'x', kEnd});
  chat_.Ask("two");  // encodes anew
  chat_.Answer("y", std::vector<int32_t>{'y', kEnd});
  EXPECT_TRUE(chat_.Retry());
  EXPECT_THAT(chat_.prompt(), ElementsAreArray(Tokens("u:one<e>\na:x<e>\nu:two<e>\na:")));
  EXPECT_TRUE(chat_.Undo());
  EXPECT_TRUE(chat_.Retry());
  EXPECT_THAT(chat_.prompt(), ElementsAreArray(Tokens("u:one<e>\na:")));
}

TEST_F(ConversationTest, ChangesNothingWhenTheTemplateRefuses) {
  chat_.Ask("one");
  chat_.Answer("y", std::vector<int32_t>{'y', kEnd});
  EXPECT_THROW(chat_.Ask("refuse"), std::runtime_error);
  EXPECT_THROW(chat_.SetSystem("refuse"), std::runtime_error);
  EXPECT_EQ(chat_.messages().size(), 2u);
  EXPECT_EQ(chat_.system(), std::nullopt);
  chat_.Ask("two");
  EXPECT_THAT(chat_.prompt(), ElementsAreArray(Tokens("u:one<e>\na:y<e>\nu:two<e>\na:")));
}

TEST_F(ConversationTest, SystemMessageComesFirstAndSurvivesClear) {
  chat_.SetSystem("be brief");
  chat_.Ask("one");
  chat_.Answer("y", std::vector<int32_t>{'y', kEnd});
  chat_.Clear();
  chat_.Ask("two");
  EXPECT_THAT(chat_.prompt(), ElementsAreArray(Tokens("s:be brief<e>\nu:two<e>\na:")));
  chat_.Answer("y", std::vector<int32_t>{'y', kEnd});
  chat_.SetSystem(std::nullopt);
  chat_.Ask("three");
  EXPECT_THAT(chat_.prompt(), ElementsAreArray(Tokens("u:two<e>\na:y<e>\nu:three<e>\na:")));
}

TEST_F(ConversationTest, GoesOnWithALoadedConversation) {
  chat_.Ask("gone");
  chat_.Load("be", {{"user", "one"}, {"assistant", "ab"}});
  const auto loaded = Tokens("s:be<e>\nu:one<e>\na:ab<e>\n");
  EXPECT_THAT(chat_.prompt(), ElementsAreArray(loaded));
  chat_.Ask("two");
  EXPECT_THAT(chat_.prompt(), ElementsAreArray(Join(loaded, Tokens("u:two<e>\na:"))));
  EXPECT_TRUE(chat_.Undo());
  EXPECT_TRUE(chat_.Retry());
  EXPECT_THAT(chat_.prompt(), ElementsAreArray(Tokens("s:be<e>\nu:one<e>\na:")));
}

TEST_F(ConversationTest, LoadingWhatTheTemplateRefusesChangesNothing) {
  chat_.Ask("one");
  chat_.Answer("y", std::vector<int32_t>{'y', kEnd});
  EXPECT_THROW(chat_.Load("be", {{"user", "refuse"}, {"assistant", "x"}}), std::runtime_error);
  EXPECT_EQ(chat_.messages().size(), 2u);
  EXPECT_EQ(chat_.system(), std::nullopt);
  chat_.Ask("two");
  EXPECT_THAT(chat_.prompt(), ElementsAreArray(Tokens("u:one<e>\na:y<e>\nu:two<e>\na:")));
}

// Half a character that the answer never completed cannot be continued.
TEST_F(ConversationTest, EncodesAnewAfterHalfACharacter) {
  chat_.Ask("hi");
  chat_.Answer("\uFFFD", std::vector<int32_t>{kBroken});
  chat_.Ask("more");
  const auto tokens = chat_.prompt();
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), kBroken), 0);
}

}  // namespace
}  // namespace godwit::chat::conversation_test
