#include "eval/stream_eval.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "base/error.h"
#include "base/split_text.h"
#include "base/stopwatch.h"
#include "eval/register_lines.h"

namespace godwit::eval {
namespace {

constexpr int64_t kMost = int64_t{1} << 32;  // of any count

void Check(const StreamEvalOptions& options) {
  const auto check = [](const char* what, int64_t value) {
    if (value < 1 || value > kMost) {
      Throw(ErrorKind::kInput, "{}: expected 1 to {}, found {}", what, kMost, value);
    }
  };
  check("the lines of a stream", options.lines);
  check("the lines from one query to the next", options.every);
  check("the samples", options.samples);
  check("the tokens of an answer", options.stream.max_new_tokens);
  if (options.distances.empty()) Throw(ErrorKind::kInput, "there is no distance to measure");
  for (const int64_t distance : options.distances) {
    if (distance < 0 || distance >= options.lines) {
      Throw(ErrorKind::kInput,
            "distance {}: a stream of {} lines has no query that far back, expected 0 to {}",
            distance, options.lines, options.lines - 1);
    }
  }
}

// The lines of a sample, and the queries at one distance.
class Script {
 public:
  Script(const StreamCoder& coder, const StreamEvalOptions& options, int64_t sample)
      : coder_(coder), options_(options), sample_(sample) {
    // The header begins the text, so EncodeInside does not apply.
    header_ = coder.encode(kRegisterHeader);
    for (int64_t line = 0; line < options.lines; ++line) {
      lines_.push_back(EncodeInside(coder.encode, RegisterLine(line, Value(line))));
      tokens_ += std::ssize(lines_.back());
    }
  }

  bool HasQuery(int64_t line, int64_t distance) const {
    return line >= distance && (line - distance) % options_.every == 0;
  }
  int64_t Queries(int64_t distance) const {
    return (options_.lines - 1 - distance) / options_.every + 1;
  }
  int64_t Value(int64_t line) const { return RegisterValue(options_.seed, sample_, line); }
  std::vector<int32_t> Query(int64_t line) const {
    return EncodeInside(coder_.encode, RegisterQuery(line));
  }

  std::span<const int32_t> header() const { return header_; }
  std::span<const int32_t> line(int64_t i) const { return lines_[i]; }
  // Tokens of the text without its answers. The last query is the longest.
  int64_t Tokens(int64_t distance) const {
    const int64_t last = options_.lines - 1 - distance;
    return std::ssize(coder_.frame) + std::ssize(header_) + tokens_ +
           Queries(distance) * std::ssize(Query(last - last % options_.every));
  }
  int64_t MaxTokens(int64_t distance) const {
    // The newline, and the pieces of the answer's last token.
    constexpr int64_t kEnd = 4;
    const int64_t answer =
        std::max(options_.stream.max_new_tokens,
                 std::ssize(EncodeInside(coder_.encode, RegisterAnswer(50000) + "\n")));
    return Tokens(distance) + Queries(distance) * (answer + kEnd);
  }

 private:
  const StreamCoder& coder_;
  const StreamEvalOptions& options_;
  int64_t sample_;
  std::vector<int32_t> header_;
  std::vector<std::vector<int32_t>> lines_;
  int64_t tokens_ = 0;  // of the lines
};

class Runner {
 public:
  Runner(const Reader& reader, const StreamCoder& coder, const StreamEvalOptions& options)
      : reader_(reader), coder_(coder), options_(options) {
    for (const int64_t distance : options.distances) {
      result_.distances.push_back({.distance_lines = distance});
    }
  }

  StreamEvalResult Run() {
    const Stopwatch watch;
    const auto distances = std::ssize(options_.distances);
    for (int64_t sample = 0; sample < options_.samples; ++sample) {
      const Script script(coder_, options_, sample);
      for (int64_t i = 0; i < distances; ++i) {
        auto& result = result_.distances[i];
        CheckStreamFits(reader_, script.MaxTokens(result.distance_lines));
        stream_tokens_ = script.Tokens(result.distance_lines);
        const int64_t left = (options_.samples - sample) * distances - i;
        total_tokens_ = done_tokens_ + left * stream_tokens_;
        RunStream(script, sample, result);
        done_tokens_ += stream_tokens_;
      }
    }
    for (DistanceResult& result : result_.distances) {
      result.distance_tokens /= static_cast<double>(result.queries);
    }
    result_.kv = reader_.kv();
    result_.elapsed_ms = watch.ms();
    return result_;
  }

 private:
  void RunStream(const Script& script, int64_t sample, DistanceResult& result) {
    Stream stream(reader_, coder_, options_.stream);
    stream.Append(script.header());
    std::vector<int64_t> begins;  // of each line, in tokens
    int64_t written = stream.tokens();
    for (int64_t line = 0; line < options_.lines; ++line) {
      begins.push_back(stream.tokens());
      stream.Append(script.line(line));
      written += std::ssize(script.line(line));
      if (!script.HasQuery(line, result.distance_lines)) continue;

      const int64_t asked = line - result.distance_lines;
      const auto query = script.Query(asked);
      stream.Append(query);
      written += std::ssize(query);
      const int64_t value = script.Value(asked);
      StreamQuery turn;
      turn.position = stream.tokens() - 1;
      turn.fingerprint = stream.fingerprint();
      turn.expected = fmt::format("{}", value);
      turn.sample = sample;
      turn.line = asked;
      turn.distance_lines = result.distance_lines;
      turn.distance_tokens = turn.position - begins[asked];
      if (options_.recall && options_.recall(turn)) {
        stream.Recall(turn.fed);
        turn.known = true;
      } else {
        const std::string answer = stream.Ask(
            RegisterAnswer(value), [&](int64_t pending) { Progress(written - pending); });
        turn.answer = std::string(Stripped(answer));
        turn.fed.assign(stream.fed().begin(), stream.fed().end());
        turn.right = AnswersRegister(answer, value);
      }
      Add(result, turn);
    }
    result_.tokens += stream.tokens();
  }

  void Add(DistanceResult& result, const StreamQuery& query) {
    ++result.queries;
    if (query.right) ++result.right;
    result.distance_tokens += static_cast<double>(query.distance_tokens);
    if (options_.on_query) options_.on_query(query);
  }

  void Progress(int64_t tokens) const {
    if (!options_.on_progress) return;
    options_.on_progress(done_tokens_ + std::clamp<int64_t>(tokens, 0, stream_tokens_),
                         total_tokens_);
  }

  const Reader& reader_;
  const StreamCoder& coder_;
  const StreamEvalOptions& options_;
  StreamEvalResult result_;
  int64_t done_tokens_ = 0;    // of the streams before this one, without answers
  int64_t stream_tokens_ = 0;  // of this stream
  int64_t total_tokens_ = 0;   // of all streams, estimated
};

}  // namespace

StreamEvalResult MeasureStreamEval(const Reader& reader, const StreamCoder& coder,
                                   const StreamEvalOptions& options) {
  Check(options);
  return Runner(reader, coder, options).Run();
}

}  // namespace godwit::eval
