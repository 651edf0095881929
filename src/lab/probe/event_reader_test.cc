#include "lab/probe/event_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/test_support.h"

namespace godwit::lab::probe::event_reader_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> Read(std::string_view text, size_t piece) {
  EventReader reader;
  std::vector<std::string> events;
  for (size_t at = 0; at < text.size(); at += piece) {
    for (std::string& event : reader.Push(text.substr(at, piece))) {
      events.push_back(std::move(event));
    }
  }
  return events;
}

TEST(EventReader, ReadsEventsHoweverTheyAreCut) {
  constexpr std::string_view kText =
      ": a comment\n\ndata: {\"a\": 1}\r\n\r\nevent: x\ndata:one\ndata:  two\nid: 3\n\n"
      "data\n\n\n\nretry: 5\n\ndata: [DONE]\r\rdata: cut off\n";
  for (size_t piece = 1; piece <= kText.size(); ++piece) {
    EXPECT_THAT(Read(kText, piece), ElementsAre("{\"a\": 1}", "one\n two", "", "[DONE]")) << piece;
  }
}

TEST(EventReader, KnowsWhatHasNotEnded) {
  EventReader reader;
  EXPECT_TRUE(reader.is_between_events());
  reader.Push("da");
  EXPECT_FALSE(reader.is_between_events());
  reader.Push("ta: x\n");
  EXPECT_FALSE(reader.is_between_events());
  EXPECT_THAT(reader.Push("\n"), ElementsAre("x"));
  EXPECT_TRUE(reader.is_between_events());
}

TEST(EventReader, EventsHaveALimit) {
  EventReader reader;
  const std::string line = "data: " + std::string(size_t{1} << 20, 'x') + "\n";
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat,
                      [&] {
                        while (true) reader.Push(line);
                      }),
              HasSubstr("longer than 16777216 bytes"));
}

}  // namespace
}  // namespace godwit::lab::probe::event_reader_test
