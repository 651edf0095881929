// KeptAnswer: an answer in events that clients read, leave and come back to. Thread-safe.
//
// One thread writes the events, and any number of clients read them. Each event has an id: the
// answer's, a colon, and a position. In an answer with one text the position is the number of the
// event, from 0 on. Several texts have no order among each other, so that their position counts the
// events of each that the reader has. Lane 0 is that of events of all texts together, and lane 1 +
// i that of text i.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/stopwatch.h"
#include "server/http_server.h"

namespace godwit::server {

// The events of each lane that a client has.
using EventCounts = std::vector<int64_t>;

class KeptAnswer {
 public:
  struct About {
    std::string id;           // as clients know it: "resp_..."
    std::string name;         // the part of it that no other answer has
    std::string owner;        // whose key it was
    std::string path;         // of the request
    int texts = 1;            // in the answer
    bool has_body = false;    // GET tells it as an object, too
    bool background = false;  // goes on without readers
    bool keeps = true;        // has the events for clients that come back
  };
  explicit KeptAnswer(About about);

  const About& about() const { return about_; }

  // --- the writer's side ---

  // The lane of a text.
  int LaneOf(int text) const { return lanes_ == 1 ? 0 : text + 1; }
  // Adds an event, in server-sent form but without an id.
  void Add(int lane, std::string_view event);
  // Tells the present readers something that nobody needs twice: a comment, or progress.
  void Tell(std::string_view piece);
  // Says that nothing follows.
  void End();
  // Answers readers that had nothing so far with an error, and ends the others.
  void Refuse(int status, const std::string& body);
  // Lets go of the readers, one of which gets another answer.
  void Drop();

  // Sets the JSON object that GET of the answer has.
  void SetBody(std::string body);

  // --- the readers' side ---

  // Parses a position: the part of an id behind its colon. Nothing: it is none.
  std::optional<EventCounts> CountsOf(std::string_view position) const;
  // Adds a reader that has these events; none: it has nothing. Called where HttpReply::Write does
  // not wait.
  void Attach(std::shared_ptr<HttpReply> reply, EventCounts has = {});
  // Whether it has the events for a reader that has fewer than all.
  bool keeps() const { return about_.keeps; }
  bool ended() const;
  std::string body() const;
  // The bytes of its events.
  int64_t bytes() const;
  // The time since it ended, or began.
  double age_ms() const;

  void Cancel() { cancel_.Cancel(); }
  // Set once the answer should end early.
  const CancelToken& cancel() const { return cancel_; }
  // Ends the answer if no reader is left for so long.
  void CancelIfLost(double grace_ms);
  // Whether it ended for that reason.
  bool is_lost() const;
  // Counts as a reader that has just gone.
  void Touch();

 private:
  struct Event {
    int lane;
    std::string text;
  };
  struct Reader {
    std::shared_ptr<HttpReply> reply;
    EventCounts has;    // the events of each lane that it has
    EventCounts skips;  // those of them that are still to come again
    bool begun = false;
  };
  using Readers = std::vector<std::shared_ptr<Reader>>;

  // An event with the id that tells all that the reader has with it.
  std::string WithId(const Reader& reader, std::string_view event) const;
  // The next event of a lane for a reader; empty: it has that already.
  std::string PieceFor(Reader& reader, int lane, std::string_view event) const;
  // Sends each reader its piece, without the lock, because a slow reader makes the writer wait.
  template <typename PieceOf>
  void Send(std::unique_lock<std::mutex>& lock, const PieceOf& piece_of);

  About about_;
  int lanes_;
  CancelToken cancel_;
  mutable std::mutex mutex_;  // guards the members below
  std::vector<Event> events_;
  Readers readers_;
  std::string body_;
  int64_t bytes_ = 0;
  bool ended_ = false;
  bool is_lost_ = false;
  bool was_read_ = false;  // before its first reader, none is lost
  Stopwatch changed_;      // since the beginning or the end
  Stopwatch read_;         // since a reader was there
};

// The single events of a text of server-sent events, each with the empty line behind it.
std::vector<std::string_view> SplitEvents(std::string_view events);

}  // namespace godwit::server
