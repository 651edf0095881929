// godwit from C++: load a model folder, open a session, generate.
//
//   godwit::Engine engine("path/to/model", {});
//   godwit::Session session = engine.NewSession({});
//   const auto prompt = engine.Tokenize("Once upon a time");
//   session.Generate(prompt, {.max_tokens = 64, .on_text = [](std::string_view text) {
//     std::cout << text << std::flush;
//   }});
//
// Failures are godwit::Error (error.h). Its kind says what ended the request; its message names the
// thing, what was expected and what was found. Lengths are in tokens, times in milliseconds, memory
// in bytes. The library never prints and never exits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "godwit/error.h"
#include "godwit/fill_in.h"
#include "godwit/price.h"
#include "godwit/sampler_options.h"

namespace godwit {

class EngineGroup;

struct LoadOptions {
  int threads = 0;  // 0: one for every core that this process may use
  std::string isa;  // "avx512", "avx2", ...; empty: the best that this processor has
  // "distribute" pins the threads that compute, and interleaves the engine's memory over the
  // machine's NUMA nodes. "none" or empty: neither.
  std::string numa;
  // The type in which linear layers are stored: "f32", "bf16" or "int8" (one scale for each output,
  // and one for each activation row that is multiplied with them). "auto": as in the checkpoint.
  std::string weights = "auto";
  // Where linear layers compute: "cuda" or "cuda:N", a GPU by NVIDIA's driver; "cpu" or empty: the
  // CPU alone. As many layers as fit lie on the GPU, the first ones, and then the output head.
  // Attention computes on the CPU, where the KV caches are, but see gpu_attention. A family that
  // GPUs do not compute is refused, and so are ranks. "emulated": the CPU runs the kernels of a
  // GPU, slowly, for tests.
  std::string device;
  // The bytes of the GPU's memory that the model may take. 0: 15 of 16 parts of what is free there.
  int64_t gpu_memory_bytes = 0;
  // Whether memory of the GPU is set aside for attention, which contexts that are read by "gpu"
  // need (SessionOptions::prefill). Results of other texts stay the same.
  bool gpu_attention = false;
  // The tokens whose keys and values a GPU keeps of each text (SessionOptions::gpu_window), for
  // numbers of two bytes. A session with f32 needs twice as many. A multiple of 64; 0: none.
  // Results of other texts stay the same.
  int64_t gpu_window = 0;
  // The number of texts whose keys and values it keeps. More texts at once work, too, but take
  // turns, and their keys cross the bus again.
  int64_t gpu_window_texts = 1;
  // The packed copy of the weights, which is mapped instead of packing the weights again. The
  // result is the same, and a large model starts within a second. Empty: the copy beside the model
  // or in packed_dir, if one matches this model. "none": no copy. Anything else is a file name.
  std::string packed;
  // Whether to make a packed copy first if no copy matches. The copy takes as much disk as the
  // weights take memory.
  bool pack = false;
  // The folder for packed copies of models whose own folders cannot be written. Empty: no such
  // copies.
  std::string packed_dir;
  // The name of one of the model's chat templates, or a file. Empty: the template called "default".
  std::string chat_template;
  // The bytes that the KV caches of all texts may take together. 0: the memory that the machine or
  // the container has left after the weights are loaded.
  int64_t kv_memory_bytes = 0;
  // The place of the KV caches on a disk instead of memory: a folder, or the name of a file that
  // does not exist yet. The caches may take kv_file_bytes of it together (0: all free bytes).
  // kv_memory_bytes then limits the part that also lies in memory, and the data derived from the
  // caches. The file has no name and disappears with the process. It changes speed and memory,
  // never the result.
  std::string kv_file;
  int64_t kv_file_bytes = 0;
  // The folder for snapshots: the keys and values of texts, saved while the texts are read. This
  // process and later ones need not read again what texts have in common. Processes and models may
  // share the folder. Empty: nothing is saved. It changes time, never the result.
  std::string cache_dir;
  // The bytes that snapshots in cache_dir may take together. 0: half of the free bytes there. The
  // least valuable snapshots go first.
  int64_t cache_bytes = 0;
  // The number of tokens after which a text that is being read is saved. It is also saved at least
  // every 20 seconds and at its end. A process that dies loses no more work than that.
  int64_t cache_every_tokens = 4096;
  // The callback for two notices, each given once: why snapshots cannot be used, and why no more
  // are saved. Any thread may call it.
  std::function<void(const std::string& message)> on_cache_notice;
  // The most tokens that one step of the model reads, over all requests together.
  int64_t step_tokens = 512;
  // The most times that the average distance between output tokens may grow while prompts are read,
  // from 1.1 to 100. 0: prompts come first, for the highest total throughput. It changes time,
  // never the result.
  double prompt_slowdown = 0;
  // Whether the processes that mpirun started, the ranks, share the context of every text, by
  // blocks or exactly (SessionOptions::prefill "star", "ring"). Rank 0 makes the calls; the others
  // make one, Engine::FollowRankZero. A request that is refused, for which a rank has no memory, or
  // that is cancelled ends alone. A step that fails on one rank ends the work of all.
  bool mpi = false;
  // How many of these ranks share the weights: neighbours, whose number divides that of all. Each
  // loads its heads, columns of MLPs and experts alone, so that a model runs that one host cannot
  // hold. Groups of so many ranks share the context of a text. If there is one group alone, each of
  // its ranks reads texts whole, and no `prefill` is needed. Results are the same bits for the same
  // number, and differ by rounding between numbers.
  int tensor_parallel = 1;
  // The silence after which a rank counts as lost, which ends the work of all others: 1,000 to
  // 3,600,000. A rank reports ten times a second that it lives, whatever it computes.
  double mpi_silence_ms = 10'000;

  // Whether to load the layer for multi-token prediction that comes with the checkpoint, for
  // GenerateOptions::draft "mtp". Its keys and values then lie in the cache of every text, which
  // takes one layer more. A model without such a layer is refused, and so are ranks.
  bool mtp = false;

  // The folder of an EAGLE-3 head that was trained for the model, for GenerateOptions::draft
  // "eagle3": config.json and safetensors. It takes the same memory in the cache of every text. A
  // head for another model is refused, and so are ranks, and mtp beside it. Empty: there is none.
  std::string eagle3;

  // A smaller model with the same tokens, for GenerateOptions::draft "model": a folder or a GGUF
  // file. Its weights lie beside the model's, in the storage that `weights` names. Its caches take
  // from the memory of KV caches, and make way for all other texts. A model with other tokens is
  // refused, and so are ranks. Empty: there is none.
  std::string draft_model;

  // Whether the tokens of a step share the scale of their int8 inputs in a checkpoint that says so.
  // (It has dynamic inputs with the strategy "tensor", SmoothQuant's O2.) Results then depend on
  // the chunks of prompts and on other texts. Else each token has its own scale, as a token that is
  // computed alone has anyway.
  bool step_scales = false;

  // The group of engines that share threads and the memory of KV caches. It decides over threads,
  // numa, kv_memory_bytes, kv_file and kv_file_bytes, and those here are not looked at. An engine
  // with mpi cannot be in one. Null: the engine is alone.
  std::shared_ptr<const EngineGroup> group;

  // Whether text will come in or go out. A model without a tokenizer is then refused before its
  // weights are read.
  bool needs_text = false;

  // The callback for progress in bytes of the checkpoint, on the loading thread.
  std::function<void(int64_t done_bytes, int64_t total_bytes)> on_progress;
  // The callback for the stage that begins, on the loading thread: "reading the tokenizer",
  // "packing the weights".
  std::function<void(std::string_view stage)> on_stage;
  // The callback for warnings: what the user should know although loading goes on.
  std::function<void(const std::string& message)> on_warning;
};

// The threads and the memory of KV caches for engines that are loaded beside each other. Steps of
// the engines take turns. Where memory is short, texts and requests of all engines give way as
// those of one engine would, the newest first. No result depends on the other engines. Thread-safe.
class EngineGroup {
 public:
  class Impl;
  // options: of these, threads, numa, kv_memory_bytes, kv_file, kv_file_bytes and on_warning.
  explicit EngineGroup(const LoadOptions& options);
  ~EngineGroup();
  EngineGroup(const EngineGroup&) = delete;
  EngineGroup& operator=(const EngineGroup&) = delete;

  // Gives back the memory of all cached texts that no request or session holds, except those that
  // are kept under a name. Waits for the step that is being computed.
  void ForgetTexts() const;
  // The bytes that the KV caches of all engines may take together, and those that they take.
  int64_t kv_memory_bytes() const;
  int64_t used_kv_bytes() const;
  // The bytes of packed copies that the engines have mapped and go on reading.
  int64_t mapped_bytes() const;

 private:
  std::shared_ptr<Impl> impl_;
};

struct SessionOptions {
  // The part of the text that stays in the KV cache. "dense": all of it. "sinks:S+W": StreamingLLM.
  // "blocks": all of it, of which the question and the answer read the blocks that matter to them.
  std::string kv = "dense";
  // The way in which the context of a prompt is read: all of the prompt but the question
  // (GenerateOptions::query_tokens). Empty: as `kv` has it. A long context is then read in time
  // proportional to its length. The cache still holds all that `kv` keeps, and the question and the
  // answer see it. It changes the result, which says so.
  //
  // "window:W": each token sees the W tokens before it.
  //
  // "star[:block=N,anchor=N,overlap=N,tail=N]": each token sees its block of N tokens, the first
  // tokens of the text, and the last tokens of the block before. Tokens of the tail see everything.
  // "block=quarter": blocks of a quarter of the context, of 32K tokens at most. "at=previous" or
  // "at=random": the first tokens are seen as if they stood there. "foreign": the first block is no
  // part of the text, and serves the others in place of the first tokens.
  // Ranks read equally many blocks each, or, with ",by-speed", in proportion to their speed when
  // the engine was made.
  //
  // "ring[:chunk=N]": ranks read the context together, N tokens each in a step whatever step_tokens
  // says. Each token sees all tokens before it. One rank alone reads as usual.
  //
  // "gpu": the GPU attends for the context, while keys and values stay in this machine's memory.
  // Each token sees all tokens before it, and the result differs from the CPU's by rounding. Needs
  // LoadOptions::gpu_attention, a `kv` that keeps every token, and keys in f32, f16 or bf16.
  //
  // "auto": ring if keys reached the ranks as fast as the ranks attend to them, as measured when
  // the engine was made; else star.
  std::string prefill;
  // The number of tokens to whose keys a GPU attends for each token, while the CPU attends to the
  // others. They are the last ones, and those at the beginning of the text that `kv` always shows.
  // Where `kv` or `prefill` tells a question from its context, the question and the answer have it,
  // else all tokens. The result differs from the CPU's by rounding. A multiple of 64, and no more
  // than `kv` shows every token. Needs LoadOptions::gpu_window, a `kv` that keeps every token, and
  // keys in f32, f16 or bf16. 0: none.
  int64_t gpu_window = 0;
  // The type of cached keys and values: "f32", "f16", "bf16" or "int8" (a scale for each token and
  // KV head). "auto": the type of the layers' weights if that is f32 or f16, else bf16. A key or
  // value beyond 65504, which f16 cannot hold, ends the call with Error(kUnsupported).
  std::string kv_type = "auto";
  // Whether attention multiplies int8 if kv_type is "int8"; the default there is yes. Queries and
  // the weights of the values are quantized as they are made; the softmax stays in float. It
  // changes perplexities by about 0.1 %, and is two to three times as fast as widening what is
  // stored.
  std::optional<bool> int8_attention;
  // The longest text, prompt and output together, for a policy that keeps everything. 0: as long as
  // the model allows. Memory is taken as the text grows.
  int64_t context_tokens = 0;
  // The tokens of the prompt that one step reads. It changes speed and memory, never the result.
  int64_t chunk_tokens = 512;
  // The owner of the texts. Texts of different owners share no cached data, in memory or on disk.
  // Response times then tell no owner what another has asked.
  std::string owner;
};

struct PromptProgress {
  int64_t done_tokens;  // including the cached ones
  int64_t total_tokens;
  int64_t cached_tokens;  // tokens that the session had read before
  double elapsed_ms;
  // The time that the rest should take, by the chunks so far; nothing where that is not known.
  std::optional<double> left_ms = {};
};

// The marks around a model's thought before its answer. They are looked for in the text with all
// special tokens spelled out.
struct ThoughtMarks {
  // "<think>", at the beginning of the output; empty: the model writes no thought
  std::string begin;
  std::string end;    // "</think>"
  bool open = false;  // the prompt ends within a thought
  // The marks between the thought's end and the answer, in this order; empty: the answer follows.
  std::vector<std::string> before_answer = {};
};

struct Event;

// The options of one request.
struct GenerateOptions {
  int64_t max_tokens = -1;  // -1: until the model ends the text or the context is full
  // The length of the question, at the end of the prompt, 1 or more. It matters where the context
  // is read in another way: with SessionOptions::prefill, and with kv "blocks".
  int64_t query_tokens = 1;
  SamplerOptions sampler;
  uint64_t sequence = 0;          // which of several answers to one prompt
  std::vector<std::string> stop;  // the text ends before any of these
  bool ignore_eos = false;        // go on after the model has ended the text
  // The JSON schema of the output, as text; {"type": "object"} allows any object. Each token is
  // chosen among those that the schema allows, so only output that is cut off breaks it. Empty: no
  // schema.
  std::string json_schema;
  // The thought before the answer. Its tokens are counted, and json_schema does not apply to it.
  ThoughtMarks thought;
  // The special tokens, as the vocabulary spells them, that the text shows. All others are left
  // out.
  std::vector<std::string> spelled_out;
  // Tokens with which the output begins, because an earlier call chose them for the same prompt
  // with the same options. They are read as a prompt is, and the rest of the output is as if they
  // had been chosen again. They come with the first event. Where log-probabilities are asked for,
  // and on ranks, they are chosen again after all.
  std::vector<int32_t> begun = {};
  // The number of likeliest tokens whose log-probabilities come with those of each output token.
  // They are the model's, before the sampler's steps. -1: no log-probabilities.
  int top_logprobs = -1;
  double timeout_ms = 0;  // after which it ends with what it has; 0: none
  // The sources of draft tokens, which the model reads together with the last token:
  //   "ngram"    what followed such a place earlier in the text
  //   "model"    the draft model (LoadOptions::draft_model)
  //   "mtp"      the layer for multi-token prediction of the checkpoint (LoadOptions::mtp)
  //   "eagle3"   the EAGLE-3 head that was loaded with the model (LoadOptions::eagle3); its folder
  //              may stand behind a colon
  //   "heads"    draft_heads.safetensors in the model's folder, or NAME.draft_heads.safetensors
  //              beside NAME.gguf
  //   "partial"  the model itself, which sees 4,096 tokens ("partial:budget=N": N) of a text of
  //              twice that or more, cached with kv "dense"; "partial:block=1" chooses them one by
  //              one and not in blocks of 64
  //
  // Commas separate several sources; empty: none. A step reads as many draft tokens as measured
  // step times say will pay. It changes speed and nothing else: the output tokens are those without
  // drafts.
  //
  // For comparison: "ngram-table[:n=4][:k=20][:lag=0]", TokenSwift's own table. It has the k most
  // frequent n-grams that begin with the text's last token, without the last `lag` tokens.
  // "triforce[:small=256][:inner=2][:outer=8]": TriForce's two levels. The draft model, which sees
  // `small` tokens, draws `inner` tokens at once for "partial", whose arguments may follow, too. A
  // chain has `outer` tokens at the most.
  std::string draft;
  // The shape of the trees of draft tokens, for comparison. "rows=16,depth=4,children=2": limits.
  // "1,3,3,3": three draft tokens, three behind each of these, and so on, whether they pay or not.
  // Empty: as large as pays.
  std::string draft_tree;
  // The name under which the cached text stays, in memory and in LoadOptions::cache_dir. It stays
  // until another text takes the name, or until Engine::StopKeeping. Up to 64 letters, digits,
  // dots, dashes and underscores. Empty: the cached text stays until its memory is needed.
  std::string keep_as;

  // Callbacks of Session::Generate, on the calling thread; with Engine::Submit, events are read
  // instead. A callback may call Cancel of the session, and nothing else of it.
  std::function<void(std::string_view text)> on_text;  // valid UTF-8, as soon as it is certain
  std::function<void(const PromptProgress&)> on_progress;
  std::function<void(const Event&)> on_event;  // every event
};

enum class FinishReason {
  kStop,         // the model ended the text, or a stop string came up
  kLength,       // max_tokens
  kContextFull,  // Session::limit_tokens
  kCancelled,    // Session::Cancel, Generation::Cancel
  kTimeout,      // GenerateOptions::timeout_ms
};

struct KvSpan {  // positions in the text, [begin, end)
  int64_t begin;
  int64_t end;
};

struct KvReport {
  std::string policy;  // as SessionOptions::kv; "dense, read by window:1024"
  // The way in which the context is read, as SessionOptions::prefill, but chosen where that is
  // "auto"; empty: as it is asked about.
  std::string prefill = {};
  int64_t seen = 0;  // tokens that went in
  // The tokens before the question, where the policy shows it other things than it showed them.
  int64_t context_tokens = 0;
  int64_t kept = 0;             // tokens that the next one may see
  std::vector<KvSpan> dropped;  // positions of the other seen - kept tokens
  int64_t bytes = 0;  // held, in memory or in a file, including pages shared with other texts
  // The use of LoadOptions::kv_file: bytes of the cache that are in memory, and bytes that were
  // read from the file since the text began.
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

// The result of speculation with draft tokens.
struct DraftReport {
  int64_t steps = 0;         // decode steps
  int64_t draft_tokens = 0;  // draft tokens that these steps read
  int64_t accepted = 0;      // draft tokens that the model would have chosen
  // Decode steps without draft tokens, because memory was missing for draft tokens that would have
  // saved time.
  int64_t steps_short_of_memory = 0;
  struct Source {
    std::string name;
    int64_t accepted;
    int64_t skipped_steps;  // steps without this source, because it took more time than it saved
  };
  std::vector<Source> sources;
};

// The passages in front of a prompt (Session::ReadPassages).
struct PassageReport {
  int64_t cached_tokens = 0;  // of head and passages, taken from texts that were read before
  int64_t reused_tokens = 0;  // turned to their places without seeing what stands before
  int64_t anew_tokens = 0;    // read twice
};

struct GenerateResult {
  // The output's text, without special tokens except those of GenerateOptions::spelled_out.
  std::string text;
  std::vector<int32_t> tokens;  // the output, with the token that ended it
  int64_t thought_tokens = 0;   // output tokens of the thought, with its marks
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // prompt tokens that were read in an earlier call
  int64_t disk_tokens = 0;    // cached tokens that came from LoadOptions::cache_dir
  // Prompt tokens that this call read: all others, unless it was cancelled.
  int64_t read_tokens = 0;
  FinishReason finish_reason = FinishReason::kStop;
  std::string stop;                     // the stop string that ended the text; empty if none did
  std::vector<TokenLogprobs> logprobs;  // [tokens], if they were asked for
  // The number of times that the request's cache gave way to an older request's, when memory for
  // all was used up. Its text was read again later.
  int64_t pauses = 0;
  KvReport kv;
  std::optional<DraftReport> drafts;  // with GenerateOptions::draft
  // For a prompt that goes on from all of the text that ReadPassages has read.
  std::optional<PassageReport> passages;
  double prompt_ms = 0;     // from the call to the first output token
  double predicted_ms = 0;  // from the first output token to the last
};

// A text with snapshots in LoadOptions::cache_dir.
struct SavedText {
  std::string id;
  int64_t tokens;                  // from the text's beginning
  int64_t bytes;                   // without what it shares with texts that begin alike
  std::string model;               // the folder's name
  std::vector<std::string> names;  // names under which the text is kept
};

struct Message {
  std::string role;  // "system", "user", "assistant", "tool"
  std::string content;
  // A JSON object of what else the template is given for the message, such as {"tool_calls":
  // [...]}.
  std::string fields = {};
};

// The news of a request since its last event.
struct Event {
  std::optional<PromptProgress> progress;  // the latest
  std::vector<int32_t> tokens;
  std::vector<TokenLogprobs> logprobs;  // [tokens], if they were asked for
  std::string text;
  // [tokens] For each token, the bytes of `text` that were certain with it. Bytes behind the last
  // one were held back up to the end of the output. The parts do not depend on the events.
  std::vector<int64_t> text_ends = {};
  int64_t thought_tokens = 0;  // so far: as GenerateResult has them
  bool done = false;           // the last event
};

// A request in progress. One thread reads its events; any thread may call Cancel. Move-only. The
// request goes on while no thread reads it, but pauses before unread tokens become many. Destroying
// the Generation cancels an unfinished request.
class Generation {
 public:
  class Impl;
  explicit Generation(std::unique_ptr<Impl> impl);
  ~Generation();
  Generation(Generation&&) noexcept;
  Generation& operator=(Generation&&) noexcept;

  // Waits for the next event. Throws the error that ended the request, and Error(kInput) after the
  // last event.
  Event Next();
  // Waits for the next event at most wait_ms; nothing if none came.
  std::optional<Event> Next(double wait_ms);

  // Waits for the end and returns the whole result, including events that were not read.
  GenerateResult Wait();

  // Ends the request within a moment, also before it has begun. Safe in any thread and any signal
  // handler.
  void Cancel() noexcept;

 private:
  std::unique_ptr<Impl> impl_;
};

// The text that Session::ReadPassages read, and its numbers.
struct PassagesRead : PassageReport {
  std::vector<int32_t> tokens;  // head and passages
};

// One text and its KV cache. Calls from several threads take turns. Move-only. A model that was
// trained with a sink token (sink_token_id in config.json) gets it in front of every text that does
// not begin with it. The sink token counts as a token of the prompt.
class Session {
 public:
  class Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // Tokenizes a prompt, as Engine::Tokenize does. Throws Error(kInput) as soon as the text is known
  // to have more tokens than the context holds and the model was made for.
  std::vector<int32_t> Tokenize(std::string_view text, bool add_special = true) const;

  // The prompt for a text with a hole. A token that is spelled out in its parts stays text. Throws
  // as Tokenize does, and Error(kUnsupported) if the model cannot fill holes.
  FillPrompt PromptToFill(const FillIn& fill) const;

  // Continues `prompt`, the whole text so far. The beginning that it shares with the last call's
  // text is not read again. Tokens that were question or answer then and are context now are.
  // Throws Error(kInput) before any work for an empty prompt, an unknown token, or senseless
  // options. A prompt longer than the context throws it too: no prompt is ever cut off. A prompt
  // whose cache does not fit into the machine throws Error(kMemory) before any work.
  GenerateResult Generate(std::span<const int32_t> prompt, const GenerateOptions& options);

  // Computes the logits [vocab] of the token after each position, in order: row(i, logits) for
  // token i, from i = `first` on. Tokens before `first` are the context of the others
  // (SessionOptions::prefill), and are not read again where the text shares them with the last one.
  // With `first` 0, everything is read. on_progress comes after the rows of every chunk, whose
  // tokens are computed together. Neither callback may wait for another request, which may wait for
  // the memory that this text holds. Throws as Generate does, and Error(kInput) for a `first`
  // beyond the text.
  void Logits(std::span<const int32_t> tokens,
              const std::function<void(int64_t position, std::span<const float> logits)>& row,
              int64_t first = 0,
              const std::function<void(const PromptProgress&)>& on_progress = {});

  // Computes the hidden state [Engine::hidden_size] of each position from `first` on, in order: the
  // output of the last layer, before the model's last norm. All else is as Logits has it.
  void HiddenStates(std::span<const int32_t> tokens,
                    const std::function<void(int64_t position, std::span<const float> state)>& row,
                    int64_t first = 0,
                    const std::function<void(const PromptProgress&)>& on_progress = {});

  // Reads `context`, about which later calls will ask: all of their prompts up to the question
  // (GenerateOptions::query_tokens). They then read the question alone. on_progress comes after
  // every chunk. Throws as Generate does, and Error(kCancelled).
  void ReadContext(std::span<const int32_t> context,
                   const std::function<void(const PromptProgress&)>& on_progress = {});
  // Replaces the text by that of another session of the engine, if both read a context alike. Their
  // SessionOptions::kv may differ in what they show a question. The part that the two would read
  // alike stays cached, and its memory is shared. Changes time, never a result. False: they read in
  // different ways, and nothing happened. Waits for a call of `other` in progress.
  bool GoOnFrom(const Session& other);

  // Appends the tokens [begin, end) of another session's text without reading them, at once: their
  // keys are turned to their new places. They have seen what stands before them there, and not what
  // stands before them here, so that what follows is not the model's own result. It is the same
  // each time. Later calls go on from this text while their prompts begin with it. It is neither
  // saved nor left to other requests, and a call that lacks memory fails where others wait.
  // Throws Error(kInput) for a session of another engine or other SessionOptions, and for places
  // that its text does not have. Throws Error(kUnsupported) for models with recurrent layers or
  // learned positions, and for sessions of several ranks. Throws it, too, for a
  // SessionOptions::prefill with a tail or with blocks of a quarter of the context.
  void ReuseTokens(const Session& other, int64_t begin, int64_t end);
  // Reads a head and passages, each passage behind the head alone, and joins them (ReuseTokens).
  // The first `read_anew` tokens of each passage but the first are then read once more where they
  // stand. A head with its passage goes on from a text in memory or a saved one, and is left to
  // later texts. Calls whose prompt begins with the tokens that it returns go on from this text.
  // With SessionOptions::prefill, each passage is a context that is read so behind the head. Tokens
  // that are read anew see what it shows them at their places. on_progress counts head and
  // passages. Throws as ReadContext and ReuseTokens do, and Error(kInput) for an empty head.
  PassagesRead ReadPassages(std::span<const int32_t> head,
                            std::span<const std::vector<int32_t>> passages, int64_t read_anew = 32,
                            const std::function<void(const PromptProgress&)>& on_progress = {});

  // Waits until the cached text is in LoadOptions::cache_dir. Returns how many of its first tokens
  // are saved, in whole pages of 64. Throws Error(kUnsupported) if there is no such folder.
  int64_t Save();
  // Replaces the text by the one saved in LoadOptions::cache_dir under that name or id, as this
  // model and these SessionOptions read it. Returns its tokens. Throws Error(kInput) if there is no
  // such text.
  int64_t Load(const std::string& name);

  // Ends the call of Generate, Logits or HiddenStates that is in progress within a moment, even one
  // that still waits for other requests. Safe in any thread and any signal handler. Generate then
  // returns what it has; the others throw Error(kCancelled). Between calls it does nothing, and no
  // later call is affected.
  void Cancel() noexcept;

  // A session with the same text. The two caches share memory as far as their texts are equal.
  // Waits for a call in progress.
  Session Fork() const;

  // The text: the last prompt and its output. The view is valid until the next call of Generate or
  // Logits.
  std::span<const int32_t> tokens() const;
  KvReport kv() const;

  // The longest text that is not refused; INT64_MAX where the policy forgets. For a model with a
  // sink token, the longest text that does not begin with it.
  int64_t limit_tokens() const;
  // The number of positions that the model has learned. No session of it reads beyond, and none
  // forgets. 0 for a model that computes positions, as most do.
  int64_t learned_positions() const;

 private:
  std::unique_ptr<Impl> impl_;
};

// The time that loading an engine took.
struct LoadTimes {
  double total_ms = 0;
  double weights_ms = 0;    // part of it: to pack weights, or to map a packed copy
  double tokenizer_ms = 0;  // part of it: to read the tokenizer
};

// A loaded model with its tokenizer. Thread-safe. Its sessions and requests go through the model
// together, step by step; no result depends on the other requests. Sessions and requests may
// outlive the engine.
// The part of a model that computes on a GPU (LoadOptions::device).
struct DeviceUse {
  std::string name;          // "GPU 0 (NVIDIA H100)"; empty: there is none
  int64_t layers = 0;        // the first layers, which compute there
  int64_t model_layers = 0;  // all
  int64_t host_mlps = 0;     // of those: the CPU computes their MLPs, such as mixtures of experts
  int64_t shared_mlps = 0;   // of those: the GPU computes the experts that serve all tokens
  bool head = false;         // whether the output head does, too
  int64_t weight_bytes = 0;  // of the GPU's memory: for weights, and for a step
  int64_t scratch_bytes = 0;
  int64_t window_bytes = 0;  // and for keys and values (gpu_window)
  bool attends = false;      // whether scratch_bytes are enough for attention (gpu_attention)
  int64_t host_bytes = 0;    // of this machine's memory, page-locked, through which copies go
  int64_t limit_bytes = 0;   // that the model may take
  int64_t total_bytes = 0;   // that the GPU has
};

class Engine {
 public:
  class Impl;
  // folder: a Hugging Face checkpoint: config.json, *.safetensors, and a tokenizer (tokenizer.json,
  // tokenizer.model, or vocab.json with merges.txt). A folder without a tokenizer still computes:
  // only what needs text fails.
  Engine(const std::string& folder, const LoadOptions& options);
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  Session NewSession(const SessionOptions& options) const;

  // Begins to continue `prompt`, as a new session's Generate would, and returns at once. Throws
  // what Generate would throw before any work. Many requests may be in progress. They begin in the
  // order of their calls, as memory allows. The part of a prompt that another text begins with is
  // read once.
  Generation Submit(std::span<const int32_t> prompt, const GenerateOptions& options,
                    const SessionOptions& session = {}) const;

  // The time and memory that Submit of this request would take. The first call, and one for a much
  // longer prompt than any before, probes the costs of a few steps, for up to some seconds. Waits
  // for the step in progress. Throws what Submit throws before any work, and Error(kUnsupported)
  // where ranks share the model.
  RequestPrice PriceOf(std::span<const int32_t> prompt, const GenerateOptions& options,
                       const SessionOptions& session = {}) const;
  // The same for a prompt whose passages are read once for all prompts: Session::ReadPassages and
  // then Generate. Cached tokens are those of head and passages. Also throws what ReadPassages
  // throws before any work, and Error(kInput) for places that are not in the prompt.
  RequestPrice PriceOf(std::span<const int32_t> prompt, const PassagePlaces& passages,
                       const GenerateOptions& options, const SessionOptions& session = {}) const;
  // Where the prompt of this request leaves the cache, of texts with SessionOptions::owner. Probes
  // and throws as PriceOf does.
  PrefixReport ExplainPrefix(std::span<const int32_t> prompt, const GenerateOptions& options,
                             const SessionOptions& session = {}) const;

  // The texts in LoadOptions::cache_dir, saved by any process; none without that folder.
  std::vector<SavedText> ListSaved() const;
  // Removes a saved text and all texts that continue it. False: there was none.
  bool RemoveSaved(const std::string& id) const;
  // Stops keeping the text under that name: it may go when its memory is needed. False: nothing was
  // on the disk.
  bool StopKeeping(const std::string& name) const;

  // Serves the requests of rank 0, on every other rank with LoadOptions::mpi, until rank 0 gives up
  // its engine and what belongs to it. Throws Error(kIo) if a rank has ended or is lost, and what
  // fails on this rank.
  void FollowRankZero() const;
  // Whether the ranks no longer work together, so that no request can be served.
  bool ranks_ended() const;

  // Converts text to tokens. add_special: frame the text as the model expects a prompt, for most
  // with a BOS. Text from ApplyChatTemplate is framed already. A text of more than `limit_tokens`
  // may end early. The result then has more than limit_tokens of its first tokens, and the rest was
  // not read.
  std::vector<int32_t> Tokenize(std::string_view text, bool add_special = true,
                                int64_t limit_tokens = INT64_MAX) const;
  std::string Detokenize(std::span<const int32_t> tokens, bool skip_special = false) const;

  // The conversation as the model's own template writes it. open: the text ends where the
  // assistant's answer begins. variables: a JSON object of what else the template is given, such as
  // {"enable_thinking": false}. tools: a JSON list of tools that may be called, in the form of
  // OpenAI's API.
  //
  // The first of these two calls reads the template. Both throw Error(kFormat) if it is broken, and
  // Error(kInput) if there is none of the name asked for. ApplyChatTemplate throws
  // Error(kUnsupported) if the model has no template (there is no fallback), or if there are tools
  // and the template knows of none.
  bool has_chat_template() const;
  // The template's own text; empty: there is none.
  std::string_view chat_template() const;
  std::string ApplyChatTemplate(std::span<const Message> messages, bool open = true,
                                std::string_view variables = "{}",
                                std::string_view tools = "[]") const;

  // Names and values on which the bits of an output depend, besides its prompt and its
  // GenerateOptions. They tell the version, the instructions, the model, and how texts of such a
  // session are kept and read. The first call reads parts of the model's files. Throws as
  // NewSession does.
  std::vector<std::pair<std::string, std::string>> Facts(const SessionOptions& session) const;

  int64_t vocab_size() const;
  int64_t hidden_size() const;  // numbers of a hidden state
  int64_t max_context() const;  // the longest text that the model was made for
  // The sampler settings that the model's makers recommend. GenerateOptions::sampler takes none of
  // them by itself.
  const SamplerDefaults& sampler_defaults() const;
  // The tokens with which the model ends a text; valid as long as the engine.
  std::span<const int32_t> end_tokens() const;
  // The token that a session puts in front of every text, for a model that was trained with it.
  std::optional<int32_t> sink_token() const;
  // The bytes that the KV caches of all texts may take together, in memory or in their file.
  // KvBytes: the most that the cache of one text of `tokens` takes.
  int64_t kv_memory_bytes() const;
  int64_t KvBytes(int64_t tokens, const SessionOptions& session) const;
  int64_t weight_bytes() const;
  const LoadTimes& load_times() const;
  int threads() const;
  std::string_view isa() const;
  const DeviceUse& device() const;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace godwit
