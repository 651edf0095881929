// godwit from C++: load a model folder, open a session, generate.
//
//   godwit::Engine engine("path/to/model", {});
//   godwit::Session session = engine.NewSession({});
//   const auto prompt = engine.Tokenize("Once upon a time");
//   session.Generate(prompt, {.max_tokens = 64, .on_text = [](std::string_view text) {
//     std::cout << text << std::flush;
//   }});
//
// Failures are godwit::Error (error.h): the kind says what ended the request, the message names
// the thing, what was expected and what was found. Lengths are in tokens, times in milliseconds,
// memory in bytes. The library never prints and never exits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "godwit/error.h"
#include "godwit/fill_in.h"
#include "godwit/sampler_options.h"

namespace godwit {

struct LoadOptions {
  int threads = 0;  // 0: one for every core that this process may use
  std::string isa;  // "avx512", "avx2", ...; empty: the best that this processor has
  // "none" or "distribute": the threads that compute are pinned, and the engine's memory is
  // interleaved over the machine's nodes. Empty: none.
  std::string numa;
  // What the linear layers are stored as: "f32", "bf16", "int8" (a scale for each output, and for
  // each row that is multiplied with them); "auto": as in the checkpoint.
  std::string weights = "auto";
  // A packed copy of the weights is mapped instead of packing them again: the same result, and a
  // large model starts within a second. Empty: one beside the model or in packed_dir, if there is
  // one of this model as it is; "none"; else the name of the file.
  std::string packed;
  // Where there is none that is right, make one first. What it takes on the disk is what the
  // weights take in memory.
  bool pack = false;
  // Where copies are made of models whose own folders cannot be written; empty: nowhere.
  std::string packed_dir;
  // One of the model's chat templates by its name, else a file; empty: the one called "default".
  std::string chat_template;
  // Bytes that the KV caches of all texts may take together; 0: what the machine, or the container
  // that the process runs in, has left once the weights are loaded.
  int64_t kv_memory_bytes = 0;
  // Where the KV caches of all texts lie instead: a folder, or the name of a file that is not there
  // yet, on a disk. They may take kv_file_bytes of it together (0: what is free), and
  // kv_memory_bytes say how much of them lies in memory, too, with what is derived from them. The
  // file has no name, and is gone with the process. It changes speed and memory, never the result.
  std::string kv_file;
  int64_t kv_file_bytes = 0;
  // A folder in which the keys and values of texts are saved as they are read, so that this process
  // and later ones need not read again what texts have in common. It may be shared by processes and
  // models. Empty: nothing is saved. It changes time, never the result.
  std::string cache_dir;
  // What it may take together; 0: half of what is free there. What is worth least goes first.
  int64_t cache_bytes = 0;
  // A text that is being read is saved every so many tokens, at least every 20 seconds, and in the
  // end: so much work at most is lost with the process.
  int64_t cache_every_tokens = 4096;
  // Called from any thread: why what was saved is of no use, or nothing more is saved; once each.
  std::function<void(const std::string& message)> on_cache_notice;
  // Tokens that one step of the model reads at most, of all requests together.
  int64_t step_tokens = 512;
  // Tokens of a text that is being written come, on average, at most so many times as far apart as
  // they would if no prompts were read meanwhile: 1.1 to 100. 0: prompts come first, which brings
  // the most tokens in all. It changes time, never the result.
  double prompt_slowdown = 0;
  // The processes that mpirun has started, ranks, share the context of every text, by blocks or
  // exactly (SessionOptions::prefill "star", "ring"). Rank 0 makes the calls, the others make one,
  // Engine::FollowRankZero. Requests run one after the other, so whoever does not read one holds up
  // the next. One that is refused, or for which a rank has no memory, ends by itself; what fails
  // otherwise, and a wish to stop, ends the work of all.
  bool mpi = false;
  // A rank of which nothing is heard for so long is lost, which ends the work of all others: 1,000
  // to 3,600,000. It tells that it lives ten times in a second, whatever it computes.
  double mpi_silence_ms = 10'000;

  // Text will come in or go out: a model without a tokenizer is refused, before its weights are
  // read.
  bool needs_text = false;

  // Called from the loading thread, with bytes of the checkpoint.
  std::function<void(int64_t done_bytes, int64_t total_bytes)> on_progress;
  // Likewise, with what begins now: "reading the tokenizer", "packing the weights".
  std::function<void(std::string_view stage)> on_stage;
  // What the user should know although loading goes on.
  std::function<void(const std::string& message)> on_warning;
};

struct SessionOptions {
  // What is kept of the text: "dense" (all), "sinks:S+W" (StreamingLLM); "blocks" (all, of which
  // the question and the answer read the blocks that matter to them).
  std::string kv = "dense";
  // How the context of a prompt is read, all of it but the question
  // (GenerateOptions::query_tokens): "window:W", each token sees the last W before it; empty: as
  // `kv` has it. What `kv` keeps is kept all the same, and seen by the question and the answer. A
  // long context is read in time proportional to its length. It changes the result, which says so.
  // "star[:block=N,anchor=N,overlap=N,tail=N]": each sees its block of N tokens, the text's first
  // ones, and of the block before the last ones; the tail's see all. Of several ranks each reads
  // as many blocks, or, with ",by-speed", as it was fast when the engine was made.
  // "ring[:chunk=N]": several ranks read it together, N tokens of each in a step whatever
  // step_tokens are, and each token sees all before it; one alone reads as ever. "auto": ranks by
  // ring if keys reach them as fast as they attend to them, as was measured when the engine was
  // made, else by star.
  std::string prefill;
  // How it is stored: "f32", "f16", "bf16", "int8" (a scale for each token and KV head); "auto":
  // as the layers' weights where these are f32 or f16, else bf16. A key or value beyond 65504,
  // which f16 cannot hold, ends the call with Error(kUnsupported).
  std::string kv_type = "auto";
  // Only if kv_type is "int8", where it is the rule: attention multiplies int8, too. Each query and
  // the weights of the values are quantized as they are made; the softmax stays in float. It
  // changes perplexities by about 0.1 %, and is two to three times as fast as to widen what is
  // stored.
  std::optional<bool> int8_attention;
  // The longest text, prompt and output together, for a policy that keeps everything; 0: as long as
  // the model allows. Memory is taken as the text grows.
  int64_t context_tokens = 0;
  // The prompt is read in pieces of this many tokens. Changes speed and memory, never the result.
  int64_t chunk_tokens = 512;
  // Texts of different owners share nothing that was read, in memory or on disk, so that nobody
  // learns by the time it takes what another has asked.
  std::string owner;
};

struct PromptProgress {
  int64_t done_tokens;  // including the cached ones
  int64_t total_tokens;
  int64_t cached_tokens;  // that the session had read before
  double elapsed_ms;
  // How long the rest should take, by what its chunks took so far; nothing where that is not known.
  std::optional<double> left_ms = {};
};

// How a model writes down what it thinks before it answers. Marks are found in the text with all
// special tokens spelled out.
struct ThoughtMarks {
  std::string begin;  // "<think>", at the beginning of the output; empty: it does not think
  std::string end;    // "</think>"
  bool open = false;  // the prompt ends within a thought
  // Marks between the end of the thought and the answer, in this order; empty: the answer follows.
  std::vector<std::string> before_answer = {};
};

struct Event;

// What a request asks for.
struct GenerateOptions {
  int64_t max_tokens = -1;  // -1: until the model ends the text or the context is full
  // The question, the last so many of the prompt, 1 or more, where the others are read in another
  // way: with SessionOptions::prefill, and with kv "blocks". Else it changes nothing.
  int64_t query_tokens = 1;
  SamplerOptions sampler;
  uint64_t sequence = 0;          // which of several answers to one prompt
  std::vector<std::string> stop;  // the text ends before any of these
  bool ignore_eos = false;        // go on after the model has ended the text
  // The output is JSON of this schema (its text; {"type": "object"}: any object), unless it is cut
  // off: of the tokens that may follow one is chosen. Empty: it is free.
  std::string json_schema;
  // A thought before the answer: json_schema asks nothing of it, and its tokens are counted.
  ThoughtMarks thought;
  // Special tokens, as the vocabulary spells them, that the text is to show: it has no others.
  std::vector<std::string> spelled_out;
  // With every output token its log-probability under the model, before the sampler's steps, and
  // those of the likeliest so many; -1: none of it.
  int top_logprobs = -1;
  double timeout_ms = 0;  // after which it ends with what it has; 0: none
  // Where guesses of the next tokens come from, which the model reads together with the last one:
  // "ngram", what the text had before in such a place; "heads", draft_heads.safetensors in the
  // model's folder, or NAME.draft_heads.safetensors beside NAME.gguf; "partial", the model itself,
  // which sees 4,096 tokens of a text of twice that or more ("partial:budget=N": N), kept with kv
  // "dense"; several with commas between; empty: nowhere. As many as pay by what steps are measured
  // to take. It changes speed and nothing else: the tokens are those without guesses.
  std::string draft;
  // What was read of it stays, in memory and in LoadOptions::cache_dir, until something else is
  // kept by this name or nothing is (Engine::LetGo): up to 64 letters, digits, dots, dashes and
  // underscores. Empty: for as long as nobody needs the room.
  std::string keep_as;

  // For Session::Generate, which calls them from the calling thread; elsewhere events are read. Of
  // the session they may use Cancel and nothing else.
  std::function<void(std::string_view text)> on_text;  // valid UTF-8, as soon as it is certain
  std::function<void(const PromptProgress&)> on_progress;
  std::function<void(const Event&)> on_event;  // all of it
};

enum class FinishReason {
  kStop,         // the model ended the text, or a stop string came up
  kLength,       // max_tokens
  kContextFull,  // Session::limit_tokens
  kCancelled,    // Session::Cancel, Generation::Cancel
  kTimeout,      // GenerateOptions::timeout_ms
};

struct KvSpan {  // of positions in the text, [begin, end)
  int64_t begin;
  int64_t end;
};

struct KvReport {
  std::string policy;  // as SessionOptions::kv; "dense, read by window:1024"
  int64_t seen = 0;    // tokens that went in
  // Of those, the ones before the question, where it is shown other things than they were.
  int64_t context_tokens = 0;
  int64_t kept = 0;             // tokens that the next one may see
  std::vector<KvSpan> dropped;  // where the other seen - kept stood
  int64_t bytes = 0;            // held, in memory or in a file, shared with other texts or not
  // With LoadOptions::kv_file: how much of the cache is in memory, and what was read from the file
  // since the text began.
  struct InFile {
    int64_t in_memory_bytes = 0;
    int64_t read_bytes = 0;
  };
  std::optional<InFile> file = {};
};

struct TokenLogprob {
  int32_t token;
  float logprob;  // natural
};

struct TokenLogprobs {
  float logprob;  // of the output token
  std::vector<TokenLogprob> top;
};

// What came of guesses.
struct DraftReport {
  int64_t steps = 0;     // that continued the text
  int64_t guesses = 0;   // that they read
  int64_t accepted = 0;  // of those, the ones that were what the model chose
  // That read none, as there was no memory for those that would have paid.
  int64_t roomless_steps = 0;
  struct Source {
    std::string name;
    int64_t accepted;
    int64_t rested_steps;  // in which it was not asked, as it took more time than it saved
  };
  std::vector<Source> sources;
};

struct GenerateResult {
  // Of the output, without special tokens but those of GenerateOptions::spelled_out.
  std::string text;
  std::vector<int32_t> tokens;  // of the output, the one that ended it included
  int64_t thought_tokens = 0;   // of those, the ones of its thought with its marks
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of the prompt, read in an earlier call
  int64_t disk_tokens = 0;    // of those, the ones that came from LoadOptions::cache_dir
  int64_t read_tokens = 0;  // of the prompt, read in this one: the others, if it was not cancelled
  FinishReason finish_reason = FinishReason::kStop;
  std::string stop;                     // the stop string that ended it; empty where none did
  std::vector<TokenLogprobs> logprobs;  // [tokens], if they were asked for
  // How often its cache gave way to an older request, when the memory for all was taken, and its
  // text was read again later.
  int64_t pauses = 0;
  KvReport kv;
  std::optional<DraftReport> drafts;  // with GenerateOptions::draft
  double prompt_ms = 0;               // from the call to the first output token
  double predicted_ms = 0;            // from there to the last
};

// What is saved of a text in LoadOptions::cache_dir.
struct SavedText {
  std::string id;
  int64_t tokens;                  // from the text's beginning
  int64_t bytes;                   // besides what it shares with texts that begin alike
  std::string model;               // the folder's name
  std::vector<std::string> names;  // by which it is kept
};

struct Message {
  std::string role;  // "system", "user", "assistant", "tool"
  std::string content;
  // A JSON object of what the template is told of it besides, such as {"tool_calls": [...]}.
  std::string fields = {};
};

// What came since the last event of a request.
struct Event {
  std::optional<PromptProgress> progress;  // the latest
  std::vector<int32_t> tokens;
  std::vector<TokenLogprobs> logprobs;  // [tokens], if they were asked for
  std::string text;
  int64_t thought_tokens = 0;  // so far: as GenerateResult has them
  bool done = false;           // the last event
};

// A request on its way. One thread reads it; Cancel is for any. Move-only. It goes on while nobody
// reads, but a slow reader holds it up before its unread tokens become many. Cancelled where it is
// destroyed before its end.
class Generation {
 public:
  class Impl;
  explicit Generation(std::unique_ptr<Impl> impl);
  ~Generation();
  Generation(Generation&&) noexcept;
  Generation& operator=(Generation&&) noexcept;

  // Waits for the next event. Throws the error that ended the request, Error(kInput) behind the
  // last event.
  Event Next();
  // Likewise, for so long at most: nothing if nothing came.
  std::optional<Event> Next(double wait_ms);

  // The rest of it, events that were not read included.
  GenerateResult Wait();

  // Ends it within a moment, also before it has begun. Any thread, any signal handler.
  void Cancel() noexcept;

 private:
  std::unique_ptr<Impl> impl_;
};

// One text and what is cached of it. Calls from several threads take turns. Move-only. A model that
// was trained with a sink token (sink_token_id in config.json) gets it in front of every text that
// does not begin with it; it then counts as a token of the prompt.
class Session {
 public:
  class Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // As Engine::Tokenize, for a prompt: throws Error(kInput) as soon as it is known to have more
  // tokens than the context holds and the model was made for, whatever follows.
  std::vector<int32_t> Tokenize(std::string_view text, bool add_special = true) const;

  // The prompt of a text with a hole. A token that is spelled out in its parts stays text. Throws
  // as Tokenize does, and Error(kUnsupported) of a model that cannot fill it.
  FillPrompt PromptToFill(const FillIn& fill) const;

  // Continues `prompt`, the whole text so far. What it shares with the text of the last call is not
  // read again, but for what was question or answer then and is context now. Throws Error(kInput)
  // before any work for an empty prompt, an unknown token, options that make no sense, or a prompt
  // longer than the context: nothing is ever cut off. Throws Error(kMemory) likewise for a prompt
  // whose cache does not fit into the machine.
  GenerateResult Generate(std::span<const int32_t> prompt, const GenerateOptions& options);

  // Logits [vocab] of the token after each position, in order: row(i, logits) for token i, from
  // i = `first` on. Of the tokens before `first`, those that the text shares with the last one are
  // not read again; with 0, everything is. on_progress: after the rows of every chunk, whose tokens
  // are computed together. Neither may wait for another request, which may wait for the memory that
  // this text holds. The tokens before `first` are the context of the others
  // (SessionOptions::prefill). Throws as Generate does, and Error(kInput) for a `first` beyond the
  // text.
  void Logits(std::span<const int32_t> tokens,
              const std::function<void(int64_t position, std::span<const float> logits)>& row,
              int64_t first = 0,
              const std::function<void(const PromptProgress&)>& on_progress = {});

  // Waits until what was read of the text is in LoadOptions::cache_dir; how many of its first
  // tokens are, whole pages of 64. Throws Error(kUnsupported) if there is no such folder.
  int64_t Save();
  // The text is now what is kept there by that name or id, as this model and these SessionOptions
  // read it; how many tokens. Throws Error(kInput) if there is no such text.
  int64_t Load(const std::string& name);

  // Makes the call of Generate or Logits that is in progress end within a moment, also one that
  // still waits for others. Any thread, any signal handler. Generate then returns what it has,
  // Logits throws Error(kCancelled). Between calls it does nothing: no later call is touched.
  void Cancel() noexcept;

  // A session with the same text, whose cache shares its memory as far as the texts go on alike.
  // Waits for a call in progress.
  Session Fork() const;

  // The text: the last prompt and its output. A view, valid until the next call of Generate or
  // Logits.
  std::span<const int32_t> tokens() const;
  KvReport kv() const;

  // The longest text that is not refused; INT64_MAX where the policy forgets. Of a model with a
  // sink token, one that does not begin with it.
  int64_t limit_tokens() const;
  // How many positions the model has learned: no session of it reads beyond, and none forgets. 0
  // for a model that computes them, as most do.
  int64_t learned_positions() const;

 private:
  std::unique_ptr<Impl> impl_;
};

// How long an engine took to load.
struct LoadTimes {
  double total_ms = 0;
  double weights_ms = 0;    // of that: to pack them, or to map a packed copy
  double tokenizer_ms = 0;  // likewise
};

// A loaded model with its tokenizer. Thread-safe. What its sessions and requests compute goes
// through the model together, step by step; nobody's result depends on who else is there. Sessions
// and requests may outlive it.
class Engine {
 public:
  class Impl;
  // folder: a Hugging Face checkpoint: config.json, *.safetensors, and a tokenizer (tokenizer.json,
  // tokenizer.model, or vocab.json with merges.txt). A folder without one still computes: only what
  // needs text fails.
  Engine(const std::string& folder, const LoadOptions& options);
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  Session NewSession(const SessionOptions& options) const;

  // Begins to continue `prompt`, as a new session's Generate would, and returns at once. Throws
  // what that would throw before any work. Many may be on their way; they begin in this order, as
  // memory allows, and a prompt that begins like the text of another reads that part once.
  Generation Submit(std::span<const int32_t> prompt, const GenerateOptions& options,
                    const SessionOptions& session = {}) const;

  // What is in LoadOptions::cache_dir, by any process, and without it nothing.
  std::vector<SavedText> ListSaved() const;
  // Removes one and what goes on from it. False: there was none.
  bool RemoveSaved(const std::string& id) const;
  // Nothing is kept by that name any more. False: nothing was on the disk.
  bool LetGo(const std::string& name) const;

  // With LoadOptions::mpi, on all ranks but rank 0: goes through all that is asked there, until
  // rank 0 gives up its engine and what belongs to it. Throws Error(kIo) where a rank has ended or
  // is lost, and what this one itself fails at.
  void FollowRankZero() const;
  // Whether the ranks no longer work together, so that no request can be served.
  bool ranks_ended() const;

  // add_special: frame the text as the model expects a prompt to be framed (a BOS, for most). Text
  // out of ApplyChatTemplate is framed already. A text of more than `limit_tokens` may end early:
  // the result is then the first of its tokens, more than that, and the rest was not looked at.
  std::vector<int32_t> Tokenize(std::string_view text, bool add_special = true,
                                int64_t limit_tokens = INT64_MAX) const;
  std::string Detokenize(std::span<const int32_t> tokens, bool skip_special = false) const;

  // The conversation as the model's own template writes it; open: the assistant's answer begins
  // where it ends; variables: a JSON object of what the template is told besides, such as
  // {"enable_thinking": false}; tools: a JSON list of those that may be called, as OpenAI's API has
  // them; with some, Error(kUnsupported) where the template knows of none. The template is read by
  // the first of these calls. Both throw Error(kFormat) for a broken one, and Error(kInput) where
  // there is none of the name asked for. Throws Error(kUnsupported) if the model has no template:
  // there is no fallback.
  bool has_chat_template() const;
  std::string ApplyChatTemplate(std::span<const Message> messages, bool open = true,
                                std::string_view variables = "{}",
                                std::string_view tools = "[]") const;

  int64_t vocab_size() const;
  int64_t max_context() const;  // the longest text that the model was made for
  // How the model's makers sample from it; GenerateOptions::sampler takes none of it by itself.
  const SamplerDefaults& sampler_defaults() const;
  // What a session puts in front of every text, for a model that was trained with it.
  std::optional<int32_t> sink_token() const;
  // What the KV caches of all texts may take together, in memory or in the file that they have, and
  // what that of a text takes at most.
  int64_t kv_memory_bytes() const;
  int64_t KvBytes(int64_t tokens, const SessionOptions& session) const;
  int64_t weight_bytes() const;
  const LoadTimes& load_times() const;
  int threads() const;
  std::string_view isa() const;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace godwit
