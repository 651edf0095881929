// The protocol on the socket to godwit-text. All numbers are little-endian.
//
// A request: u64 the size of the rest, u32 the seconds of processor time it may take, u8 its kind,
// its fields. A reply: u64 the size of the rest, u8 a WorkerStatus, the body: as listed below, or a
// message. The first request opens the file that the process then serves.
//
// Internal to src/text; worker/src/requests.rs is the other end.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace godwit {

// Grows with every change of what is said here or in worker_process.cc.
inline constexpr char kWorkerProtocol[] = "4";

enum class WorkerRequest : char {
  kOpenTokenizer = 'O',  // flag framed, u32 size and bos, u32 size and eos, tokenizer.json
                         // -> u64 vocabulary, u32 each special id
  kOpenTemplate = 'C',   // source
  kOpenGrammar = 'G',    // u32 count of the ids that end a text, u32 each, tokenizer.json; none, to
                         // try schemas
  kOpenMatcher = 'J',    // u32 number, a JSON schema -> u32 ms of processor time that it took
  kAllowed = 'M',       // u32 number, u32 each id that has come since -> flag known, a bit for each
                        // token: whether it may follow
  kCloseMatcher = 'X',  // u32 number
  kRender = 'R',        // i64 unix time in seconds, variables as JSON -> text
  kEncodePiece = 'E',   // flag first, flag last, flag add_special_tokens, a stretch of text
                        // -> u64 bytes that were encoded, u32 each id
  kDecode = 'D',        // flag skip_special_tokens, u32 each id -> text
  kIdToToken = 'I',     // u32 first id, u32 count -> for each: flag known, u32 size, token
  kTokenToId = 'T',     // token -> u32 id, or nothing
  kOpenStream = 'S',    // u32 number, flag skip_special_tokens, u32 each id pushed so far
  kPush = 'P',          // u32 number, u32 id -> flag known, text
  kFlush = 'F',         // u32 number -> flag known, text
  kCloseStream = 'X',   // u32 number
};

enum class WorkerStatus : uint8_t {
  kOk = 0,
  kBad = 1,     // the file, the template or an argument is broken
  kRaised = 2,  // a template called raise_exception: it refuses these messages; or it is no schema
  kPanic = 3,   // a library gave up, the process with it; the body is what it said
};

// How the process ends, besides SIGXCPU for its time.
enum class WorkerExit {
  kOtherVersion = 90,
  kNoMemory = 91,
  kTooDeep = 92,
  kPanic = 93,
};

// Builds the bytes of one request.
class WorkerFrame {
 public:
  explicit WorkerFrame(WorkerRequest kind) : bytes_(kHeaderBytes, '\0') {
    bytes_ += static_cast<char>(kind);
  }

  template <typename Number>
  WorkerFrame& Add(Number number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof(number));
    return *this;
  }
  WorkerFrame& AddText(std::string_view text) {
    bytes_ += text;
    return *this;
  }
  WorkerFrame& AddIds(std::span<const int32_t> ids) {
    bytes_.append(reinterpret_cast<const char*>(ids.data()), ids.size_bytes());
    return *this;
  }

  // The whole of it, now that its size is known.
  std::string_view Finish() {
    const uint64_t size_bytes = bytes_.size() - sizeof(uint64_t);
    std::memcpy(bytes_.data(), &size_bytes, sizeof(size_bytes));
    const uint32_t seconds = this->seconds();
    std::memcpy(bytes_.data() + sizeof(size_bytes), &seconds, sizeof(seconds));
    return bytes_;
  }

  // Ten times what the largest tokenizer takes to load, or a long text to encode.
  uint32_t seconds() const { return 3 + 4 * static_cast<uint32_t>(bytes_.size() >> 20); }

 private:
  static constexpr size_t kHeaderBytes = sizeof(uint64_t) + sizeof(uint32_t);

  std::string bytes_;
};

}  // namespace godwit
