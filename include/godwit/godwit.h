// godwit from C11, and from every language that calls C: libgodwit.so.
//
//   godwit_engine* engine;
//   godwit_error* error = godwit_engine_load("path/to/model", NULL, &engine);
//   if (error != NULL) { puts(error->message); godwit_error_free(error); return 1; }
//
// docs/c-api.md is the guide, and examples/c has a whole program. These rules hold for all of it:
//
// Errors. A function that can fail returns NULL, or an error that the caller frees. Output
// arguments are then untouched. No C++ exception leaves the library, and none may leave a callback.
//
// Ownership. An output argument `TYPE**` gives an object to the caller, to be freed by the `*_free`
// of its type. Freeing NULL does nothing. Members of an object belong to it. Sessions, generations
// and chats may outlive their engine. Arguments are copied, except handles, callbacks and
// user_data.
//
// Versions. A struct that begins with `struct_size` may grow at its end. The caller sets it to
// sizeof, or calls the struct's `*_init`, which also writes the defaults. NULL instead of options
// means the defaults. A struct from the library has the library's size there. A struct without
// `struct_size` never changes.
//
// Texts are UTF-8. Those with a length may hold any character; all are terminated by a zero byte
// that is not counted. Lengths are in tokens unless they say bytes, times in milliseconds.
//
// Threads. Every function may be called in any thread. Calls on one session take turns; a
// generation has one reader. An object is freed when no call uses it. The library never prints and
// never exits. It starts the program godwit-text, which reads tokenizers and chat templates.
#ifndef GODWIT_GODWIT_H_
#define GODWIT_GODWIT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef GODWIT_EXPORT
#if defined(__GNUC__)
#define GODWIT_EXPORT __attribute__((visibility("default")))
#else
#define GODWIT_EXPORT
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

// --- the library ---

// The version of the library, as "1.2.3".
GODWIT_EXPORT const char* godwit_version(void);

// --- errors ---

enum {
  GODWIT_ERROR_INPUT = 1,        // the request itself is wrong: an option, a prompt, a token id
  GODWIT_ERROR_IO = 2,           // the operating system refused: a missing file, a full disk
  GODWIT_ERROR_FORMAT = 3,       // a file is not what it claims to be
  GODWIT_ERROR_UNSUPPORTED = 4,  // valid, but not something this library or this model can do
  GODWIT_ERROR_MEMORY = 5,       // it does not fit
  GODWIT_ERROR_CANCELLED = 6,    // the caller asked to stop
  GODWIT_ERROR_INTERNAL = 7,     // a fault of the library
};

// Errors to which a program can add which of its own settings would help. The numbers of an error
// are found, limit and fits.
enum {
  GODWIT_CODE_OTHER = 0,
  GODWIT_CODE_WINDOW_TOO_LONG = 1,      // tokens of a window, of the context; the longest that fits
  GODWIT_CODE_TEXT_TOO_LONG = 2,        // the same, for a text that is read whole
  GODWIT_CODE_PROMPT_TOO_LONG = 3,      // tokens of a prompt, of the context; made for so many
  GODWIT_CODE_STREAM_TOO_LONG = 4,      // tokens that a stream may grow to, and of the context
  GODWIT_CODE_NEEDS_INT8_KV = 5,        // int8 attention with keys that are stored otherwise
  GODWIT_CODE_QUANTIZED_OTHERWISE = 6,  // a checkpoint whose quantization is not supported
  GODWIT_CODE_NEVER_REACHED = 7,        // a layer without the fixed scale that it needs
  GODWIT_CODE_NO_DRAFT_HEADS = 8,       // draft heads that the model does not have
  GODWIT_CODE_NO_PREDICTION = 9,        // a layer that predicts tokens and was not loaded
  GODWIT_CODE_NO_EAGLE3 = 10,           // an EAGLE-3 head that was not loaded
  GODWIT_CODE_WEIGHTS_TOO_LARGE = 11,   // weights that memory does not hold
  GODWIT_CODE_OTHER_RANK = 12,          // another rank has ended, and told why itself
  GODWIT_CODE_NO_DRAFT_MODEL = 13,      // a draft model that was not loaded
};

// An error: a message that names the thing, what was expected and what was found, and its numbers.
typedef struct godwit_error {
  size_t struct_size;
  int32_t kind;  // GODWIT_ERROR_*
  int32_t code;  // GODWIT_CODE_*
  const char* message;
  int64_t found;
  int64_t limit;
  int64_t fits;
  int64_t learned_positions;  // as godwit_session_limits, of the model
  int32_t ranks;              // ranks that share the text
  const char* unit;           // of the numbers: "tokens"
} godwit_error;

GODWIT_EXPORT void godwit_error_free(godwit_error* error);

// --- small objects ---

typedef struct godwit_text {
  size_t struct_size;
  const char* data;
  size_t bytes;
} godwit_text;
GODWIT_EXPORT void godwit_text_free(godwit_text* text);

typedef struct godwit_tokens {
  size_t struct_size;
  const int32_t* ids;
  int64_t count;
} godwit_tokens;
GODWIT_EXPORT void godwit_tokens_free(godwit_tokens* tokens);

typedef struct godwit_strings {
  size_t struct_size;
  const char* const* strings;
  int64_t count;
} godwit_strings;
GODWIT_EXPORT void godwit_strings_free(godwit_strings* strings);

// --- handles ---

typedef struct godwit_group godwit_group;            // threads and memory that engines share
typedef struct godwit_engine godwit_engine;          // a loaded model with its tokenizer
typedef struct godwit_session godwit_session;        // one text and its KV cache
typedef struct godwit_generation godwit_generation;  // a request in progress
typedef struct godwit_chat godwit_chat;              // answers to requests in OpenAI's shape

// --- loading ---

// The options of a load. Texts may be NULL for the default.
typedef struct godwit_load_options {
  size_t struct_size;
  int32_t threads;   // 0: one for every core that this process may use
  const char* isa;   // "avx512", "avx2", ...; NULL: the best that this processor has
  const char* numa;  // "distribute" pins threads and interleaves memory; NULL: neither
  // The type in which linear layers are stored: "auto" (NULL), "f32", "bf16", "int8", "int4".
  const char* weights;
  const char* packed;          // the packed copy: NULL: one that is found, "none", or a file
  bool pack;                   // make a packed copy first if none matches
  const char* packed_dir;      // for copies of models whose folders cannot be written; NULL: none
  const char* chat_template;   // a template's name, or a file; NULL: the template "default"
  int64_t kv_memory_bytes;     // the most for all KV caches; 0: the memory that is left
  const char* kv_file;         // a folder or a new file for KV caches; NULL: memory
  int64_t kv_file_bytes;       // the most of that file; 0: all free bytes
  const char* cache_dir;       // the folder for saved texts; NULL: nothing is saved
  int64_t cache_bytes;         // the most that saved texts take; 0: half of the free bytes
  int64_t cache_every_tokens;  // a text that is being read is saved after so many; 4096
  int64_t step_tokens;         // the most tokens of one step, over all requests; 512
  // The most times that the distance of output tokens may grow while prompts are read: 1.1 to 100.
  // 0: prompts come first.
  double prompt_slowdown;
  bool mpi;                   // share texts among the processes that mpirun started
  int32_t tensor_parallel;    // how many of these share the weights; 1
  double mpi_silence_ms;      // the silence after which a rank counts as lost; 10000
  bool mtp;                   // load the layer for multi-token prediction (draft "mtp")
  const godwit_group* group;  // decides over threads, numa and KV memory; NULL: alone
  bool needs_text;            // refuse a model without a tokenizer before its weights are read

  void* user_data;  // given to the callbacks
  // The progress in bytes of the checkpoint, on the loading thread. False ends the load with
  // GODWIT_ERROR_CANCELLED.
  bool (*on_progress)(void* user_data, int64_t done_bytes, int64_t total_bytes);
  // The stage that begins, on the loading thread: "packing the weights".
  void (*on_stage)(void* user_data, const char* stage);
  // Warnings: loading goes on, but the user should know.
  void (*on_warning)(void* user_data, const char* message);
  // Why saved texts cannot be used, or no more are saved. Any thread may call it, as long as the
  // engine or one of its sessions lives.
  void (*on_cache_notice)(void* user_data, const char* message);
  // A smaller model with the same tokens, for draft "model": a folder or a GGUF file; NULL: none.
  const char* draft_model;
  // Whether the tokens of a step share the scale of their int8 inputs where the checkpoint says so.
  // Results then depend on the chunks of prompts and on other texts.
  bool step_scales;
  // Where linear layers compute: "cpu" (NULL), or "cuda" or "cuda:N", a GPU by NVIDIA's driver.
  const char* device;
  int64_t gpu_memory_bytes;  // the most of the GPU's memory; 0: 15/16 of what is free there
  bool gpu_attention;        // the GPU may attend, for texts with the prefill "gpu"
  // The tokens whose keys and values the GPU keeps of each text, for sessions with a gpu_window.
  // Numbers have two bytes; sessions with f32 need twice as many tokens. 0: none.
  int64_t gpu_window;
  int64_t gpu_window_texts;  // of how many texts, 1 or more
} godwit_load_options;
GODWIT_EXPORT void godwit_load_options_init(godwit_load_options* options, size_t struct_size);

// options: of these, threads, numa, kv_memory_bytes, kv_file, kv_file_bytes and on_warning.
GODWIT_EXPORT godwit_error* godwit_group_new(const godwit_load_options* options,
                                             godwit_group** group);
GODWIT_EXPORT void godwit_group_free(godwit_group* group);
// Gives back the memory of all cached texts that no request or session holds and no name keeps.
GODWIT_EXPORT godwit_error* godwit_group_forget_texts(const godwit_group* group);

typedef struct godwit_group_memory {
  size_t struct_size;
  int64_t kv_memory_bytes;  // that the KV caches of all engines may take together
  int64_t used_kv_bytes;    // that they take
  int64_t mapped_bytes;     // of packed copies that the engines have mapped
} godwit_group_memory;
// memory: its struct_size is set by the caller.
GODWIT_EXPORT godwit_error* godwit_group_get_memory(const godwit_group* group,
                                                    godwit_group_memory* memory);

// model: a folder of a Hugging Face checkpoint, or a GGUF file.
GODWIT_EXPORT godwit_error* godwit_engine_load(const char* model,
                                               const godwit_load_options* options,
                                               godwit_engine** engine);
GODWIT_EXPORT void godwit_engine_free(godwit_engine* engine);

typedef struct godwit_engine_facts {
  size_t struct_size;
  int64_t vocab_size;
  int64_t hidden_size;
  int64_t max_context;  // the longest text that the model was made for
  int32_t sink_token;   // the token in front of every text; -1: none
  int32_t threads;
  const char* isa;  // the instruction set; valid as long as the engine
  int64_t kv_memory_bytes;
  int64_t weight_bytes;
  double load_ms;             // all of loading
  double weights_ms;          // part of it: to pack weights, or to map a packed copy
  double tokenizer_ms;        // part of it: to read the tokenizer
  const int32_t* end_tokens;  // with which the model ends a text; valid as long as the engine
  int64_t end_tokens_count;
} godwit_engine_facts;
// facts: its struct_size is set by the caller.
GODWIT_EXPORT godwit_error* godwit_engine_get_facts(const godwit_engine* engine,
                                                    godwit_engine_facts* facts);

// --- text ---

// Converts text to tokens. add_special: frame the text as the model expects a prompt, for most with
// a BOS. limit_tokens: a longer text may end early, with more than so many tokens; -1: no limit.
GODWIT_EXPORT godwit_error* godwit_engine_tokenize(const godwit_engine* engine, const char* text,
                                                   size_t text_bytes, bool add_special,
                                                   int64_t limit_tokens, godwit_tokens** tokens);
GODWIT_EXPORT godwit_error* godwit_engine_detokenize(const godwit_engine* engine,
                                                     const int32_t* ids, int64_t count,
                                                     bool skip_special, godwit_text** text);

GODWIT_EXPORT godwit_error* godwit_engine_has_chat_template(const godwit_engine* engine,
                                                            bool* has_template);

typedef struct godwit_message {
  size_t struct_size;  // the same for all messages of an array
  const char* role;    // "system", "user", "assistant", "tool"
  const char* content;
  size_t content_bytes;
  const char* fields;  // a JSON object of what else the template is given; NULL: nothing
} godwit_message;

// The conversation as the model's own template writes it. open: the text ends where the assistant's
// answer begins. variables: a JSON object for the template; NULL: {}. tools: a JSON list in the
// form of OpenAI's API; NULL: none. The text is framed: tokenize it without add_special.
GODWIT_EXPORT godwit_error* godwit_engine_apply_chat_template(
    const godwit_engine* engine, const godwit_message* messages, int64_t count, bool open,
    const char* variables, const char* tools, godwit_text** text);

// --- sessions ---

// The options of one text.
typedef struct godwit_session_options {
  size_t struct_size;
  const char* kv;          // what stays in the cache: "dense" (NULL), "sinks:S+W", "blocks"
  const char* prefill;     // how a context is read: "window:W", "star", "ring", "gpu"; NULL: by kv
  const char* kv_type;     // "auto" (NULL), "f32", "f16", "bf16", "int8"
  int32_t int8_attention;  // 1, 0, or -1: yes if kv_type is "int8"
  int64_t context_tokens;  // the longest text; 0: as long as the model allows
  int64_t chunk_tokens;    // tokens of the prompt that one step reads; 512
  const char* owner;       // texts of different owners share no cached data; NULL: the owner ""
  int64_t gpu_window;      // tokens to whose keys the GPU attends for each token; 0: none
} godwit_session_options;
GODWIT_EXPORT void godwit_session_options_init(godwit_session_options* options, size_t struct_size);

// The most bytes that the cache of one text of so many tokens takes.
GODWIT_EXPORT godwit_error* godwit_engine_kv_bytes(const godwit_engine* engine, int64_t tokens,
                                                   const godwit_session_options* options,
                                                   int64_t* bytes);

GODWIT_EXPORT godwit_error* godwit_session_new(const godwit_engine* engine,
                                               const godwit_session_options* options,
                                               godwit_session** session);
GODWIT_EXPORT void godwit_session_free(godwit_session* session);
// A session with the same text. The two caches share memory as far as their texts are equal.
GODWIT_EXPORT godwit_error* godwit_session_fork(const godwit_session* session,
                                                godwit_session** fork);
// Tokenizes a prompt, and refuses it as soon as it is known to be longer than the context.
GODWIT_EXPORT godwit_error* godwit_session_tokenize(const godwit_session* session, const char* text,
                                                    size_t text_bytes, bool add_special,
                                                    godwit_tokens** tokens);
// The text so far: the last prompt and its output.
GODWIT_EXPORT godwit_error* godwit_session_tokens(const godwit_session* session,
                                                  godwit_tokens** tokens);

// limit_tokens: the longest text that is not refused; INT64_MAX where the policy forgets.
// learned_positions: the number of positions that the model has learned; 0: it computes them.
GODWIT_EXPORT godwit_error* godwit_session_limits(const godwit_session* session,
                                                  int64_t* limit_tokens,
                                                  int64_t* learned_positions);

// Ends the call on the session that is in progress within a moment. Safe in any thread and any
// signal handler. Between calls it does nothing.
GODWIT_EXPORT void godwit_session_cancel(godwit_session* session);

// Waits until the cached text is in cache_dir. tokens: how many of its first tokens are saved.
GODWIT_EXPORT godwit_error* godwit_session_save(godwit_session* session, int64_t* tokens);
// Replaces the text by the one saved under that name or id. tokens: its length.
GODWIT_EXPORT godwit_error* godwit_session_load(godwit_session* session, const char* name,
                                                int64_t* tokens);

// --- prompts ---

typedef struct godwit_fill_file {
  const char* name;
  const char* text;
} godwit_fill_file;

// A text with a hole, for models that were trained to fill it.
typedef struct godwit_fill_in {
  size_t struct_size;
  const char* before;
  const char* behind;
  const godwit_fill_file* files;  // the other files of a program; NULL: none
  int64_t files_count;
  const char* begun;  // text that stands in the hole already; NULL: none
} godwit_fill_in;

typedef struct godwit_fill_prompt {
  size_t struct_size;
  const int32_t* ids;
  int64_t count;
  const char* const* ends;  // tokens that end the filling: stop at these and spell them out
  int64_t ends_count;
} godwit_fill_prompt;
GODWIT_EXPORT godwit_error* godwit_session_fill_prompt(const godwit_session* session,
                                                       const godwit_fill_in* fill,
                                                       godwit_fill_prompt** prompt);
GODWIT_EXPORT void godwit_fill_prompt_free(godwit_fill_prompt* prompt);

// The prompt of a conversation, up to where the answer begins.
typedef struct godwit_chat_prompt {
  size_t struct_size;
  const int32_t* ids;
  int64_t count;
  int64_t query_tokens;  // the length of the question at its end
} godwit_chat_prompt;
// messages to tools: as in godwit_engine_apply_chat_template. The prompt goes into `answers` of
// godwit_generate_options, and may outlive the session.
GODWIT_EXPORT godwit_error* godwit_session_chat_prompt(const godwit_session* session,
                                                       const godwit_message* messages,
                                                       int64_t count, const char* variables,
                                                       const char* tools,
                                                       godwit_chat_prompt** prompt);
GODWIT_EXPORT void godwit_chat_prompt_free(godwit_chat_prompt* prompt);
// Splits the output's text: {"role": "assistant", "content", "reasoning_content", "tool_calls":
// [{"id", "type", "function": {"name", "arguments"}}]}, as JSON. Parts that are missing are left
// out, but for the content.
GODWIT_EXPORT godwit_error* godwit_chat_prompt_read(const godwit_chat_prompt* prompt,
                                                    const char* text, size_t text_bytes,
                                                    godwit_text** message);

// --- generation ---

// Steps of the sampler.
enum {
  GODWIT_STEP_PENALTIES = 0,
  GODWIT_STEP_TOP_K = 1,
  GODWIT_STEP_TOP_P = 2,
  GODWIT_STEP_MIN_P = 3,
  GODWIT_STEP_ETA = 4,
  GODWIT_STEP_TEMPERATURE = 5,
};

typedef struct godwit_logit_bias {
  int32_t token;
  float bias;  // added to the logit; -INFINITY bans the token
} godwit_logit_bias;

// How a token is chosen from logits, with llama.cpp's names and order of steps.
typedef struct godwit_sampler_options {
  size_t struct_size;
  const godwit_logit_bias* logit_bias;  // NULL: none
  int64_t logit_bias_count;
  const int32_t* steps;  // the steps in their order; NULL: all, as listed above
  int64_t steps_count;
  int32_t repeat_last_n;    // penalties look at so many tokens; -1: all. 64
  float repeat_penalty;     // 1: off
  float presence_penalty;   // 0: off
  float frequency_penalty;  // 0: off
  float temperature;        // 0: greedy. 0.8
  int32_t top_k;            // 0: off. 40
  float top_p;              // 1: off. 0.95
  float min_p;              // 0: off. 0.05
  float eta;                // 0: off
  uint64_t seed;
} godwit_sampler_options;
GODWIT_EXPORT void godwit_sampler_options_init(godwit_sampler_options* options, size_t struct_size);

// Writes the recommendations of the model's makers over `options`. notes: recommendations that the
// engine cannot follow, or that make no sense, a sentence each; NULL: not wanted.
GODWIT_EXPORT godwit_error* godwit_engine_recommend_sampler(const godwit_engine* engine,
                                                            godwit_sampler_options* options,
                                                            godwit_strings** notes);

// The marks around a model's thought before its answer.
typedef struct godwit_thought_marks {
  size_t struct_size;
  const char* begin;                 // "<think>"
  const char* end;                   // "</think>"
  bool open;                         // the prompt ends within a thought
  const char* const* before_answer;  // marks between the thought's end and the answer
  int64_t before_answer_count;
} godwit_thought_marks;

typedef struct godwit_prompt_progress {
  size_t struct_size;
  int64_t done_tokens;  // including the cached ones
  int64_t total_tokens;
  int64_t cached_tokens;  // that were read before
  double elapsed_ms;
  double left_ms;  // the expected time for the rest; negative: unknown
} godwit_prompt_progress;

typedef struct godwit_token_logprob {
  int32_t token;
  float logprob;  // natural
} godwit_token_logprob;

typedef struct godwit_token_logprobs {
  const godwit_token_logprob* top;  // [top_count], the likeliest tokens
  int32_t top_count;
  float logprob;  // of the output token
} godwit_token_logprobs;

// The news of a request since its last event.
typedef struct godwit_event {
  size_t struct_size;
  const godwit_prompt_progress* progress;  // the latest; NULL: none
  const int32_t* tokens;
  int64_t tokens_count;
  const godwit_token_logprobs* logprobs;  // [tokens_count], if they were asked for; else NULL
  const char* text;                       // as soon as it is certain
  size_t text_bytes;
  int64_t thought_tokens;  // output tokens of the thought so far
  bool done;               // the last event
} godwit_event;
GODWIT_EXPORT void godwit_event_free(godwit_event* event);

// The options of one request.
typedef struct godwit_generate_options {
  size_t struct_size;
  int64_t max_tokens;    // -1: until the model ends the text or the context is full
  int64_t query_tokens;  // the length of the question at the prompt's end; 1
  const godwit_sampler_options* sampler;  // NULL: the defaults of its init
  uint64_t sequence;                      // which of several answers to one prompt
  const char* const* stop;                // the text ends before any of these
  int64_t stop_count;
  bool ignore_eos;
  const char* json_schema;              // the schema of the output; NULL: none
  const godwit_thought_marks* thought;  // NULL: none
  const char* const* spelled_out;       // special tokens that the text shows
  int64_t spelled_out_count;
  int32_t top_logprobs;  // the likeliest tokens that come with each token; -1: no log-probabilities
  double timeout_ms;     // after which it ends with what it has; 0: none
  const char* draft;     // "ngram", "model", "mtp", "heads", "partial", by commas; NULL: none
  const char* keep_as;   // the name under which the cached text stays; NULL: none
  // The conversation that the output answers: sets query_tokens, thought and spelled_out. NULL:
  // none.
  const godwit_chat_prompt* answers;

  void* user_data;  // given to the callback
  // The callback of godwit_session_generate, on the calling thread, for every event. The event is
  // valid during the call. False ends the request, as godwit_session_cancel does.
  bool (*on_event)(void* user_data, const godwit_event* event);
} godwit_generate_options;
GODWIT_EXPORT void godwit_generate_options_init(godwit_generate_options* options,
                                                size_t struct_size);

typedef struct godwit_kv_span {  // positions in the text, [begin, end)
  int64_t begin;
  int64_t end;
} godwit_kv_span;

// A report of what a KV cache holds.
typedef struct godwit_kv_report {
  size_t struct_size;
  const char* policy;
  const char* prefill;
  int64_t seen;                   // tokens that went in
  int64_t context_tokens;         // tokens before the question
  int64_t kept;                   // tokens that the next one may see
  const godwit_kv_span* dropped;  // the other tokens
  int64_t dropped_count;
  int64_t bytes;
  bool in_file;                  // whether the next two are known
  int64_t file_in_memory_bytes;  // of the cache in kv_file
  int64_t file_read_bytes;       // since the text began
} godwit_kv_report;
GODWIT_EXPORT godwit_error* godwit_session_get_kv(const godwit_session* session,
                                                  godwit_kv_report** report);
GODWIT_EXPORT void godwit_kv_report_free(godwit_kv_report* report);

typedef struct godwit_draft_source {
  const char* name;
  int64_t accepted;
  int64_t skipped_steps;
} godwit_draft_source;

typedef struct godwit_draft_report {
  size_t struct_size;
  int64_t steps;
  int64_t draft_tokens;
  int64_t accepted;
  int64_t steps_short_of_memory;
  const godwit_draft_source* sources;
  int64_t sources_count;
} godwit_draft_report;

enum {
  GODWIT_FINISH_STOP = 0,          // the model ended the text, or a stop text came up
  GODWIT_FINISH_LENGTH = 1,        // max_tokens
  GODWIT_FINISH_CONTEXT_FULL = 2,  // limit_tokens
  GODWIT_FINISH_CANCELLED = 3,
  GODWIT_FINISH_TIMEOUT = 4,
};

typedef struct godwit_result {
  size_t struct_size;
  const char* text;
  size_t text_bytes;
  const int32_t* tokens;  // the output, with the token that ended it
  int64_t tokens_count;
  int64_t thought_tokens;
  int64_t prompt_tokens;
  int64_t cached_tokens;                  // prompt tokens that were read in an earlier call
  int64_t disk_tokens;                    // cached tokens that came from cache_dir
  int64_t read_tokens;                    // prompt tokens that this call read
  int32_t finish_reason;                  // GODWIT_FINISH_*
  const char* stop;                       // the stop text that ended it; empty: none
  const godwit_token_logprobs* logprobs;  // [tokens_count], if they were asked for; else NULL
  int64_t pauses;  // the number of times that the cache gave way to an older request's
  const godwit_kv_report* kv;
  const godwit_draft_report* drafts;  // NULL: no drafts
  double prompt_ms;                   // from the call to the first output token
  double predicted_ms;                // from the first output token to the last
} godwit_result;
GODWIT_EXPORT void godwit_result_free(godwit_result* result);

// Continues a prompt, the whole text so far. The beginning that it shares with the last call's text
// is not read again. A prompt that does not fit is refused before any work, never cut off.
GODWIT_EXPORT godwit_error* godwit_session_generate(godwit_session* session, const int32_t* prompt,
                                                    int64_t count,
                                                    const godwit_generate_options* options,
                                                    godwit_result** result);

// Begins to continue a prompt in a text of its own, and returns at once. Many requests may be in
// progress; a beginning that they share is read once. options: without on_event.
GODWIT_EXPORT godwit_error* godwit_engine_submit(const godwit_engine* engine, const int32_t* prompt,
                                                 int64_t count,
                                                 const godwit_generate_options* options,
                                                 const godwit_session_options* session,
                                                 godwit_generation** generation);
// Waits for the next event at most wait_ms; negative: without end. event: NULL if none came.
GODWIT_EXPORT godwit_error* godwit_generation_next(godwit_generation* generation, double wait_ms,
                                                   godwit_event** event);
// Waits for the end. The result includes events that were not read.
GODWIT_EXPORT godwit_error* godwit_generation_wait(godwit_generation* generation,
                                                   godwit_result** result);
// Ends the request within a moment. Safe in any thread and any signal handler.
GODWIT_EXPORT void godwit_generation_cancel(godwit_generation* generation);
// Cancels an unfinished request.
GODWIT_EXPORT void godwit_generation_free(godwit_generation* generation);

// --- logits and hidden states ---

// Rows of a text's positions, in order, from `first` on.
typedef struct godwit_rows_options {
  size_t struct_size;
  int64_t first;  // tokens before it are the context of the others
  float* out;     // receives all rows, [count - first, width]; NULL: not wanted
  void* user_data;
  // The callback for each row, on the calling thread; `values` is valid during the call. False ends
  // the call with GODWIT_ERROR_CANCELLED. NULL: not wanted.
  bool (*on_row)(void* user_data, int64_t position, const float* values, int64_t width);
  // The callback after the rows of every chunk. False as in on_row. NULL: not wanted.
  bool (*on_progress)(void* user_data, const godwit_prompt_progress* progress);
} godwit_rows_options;

// Computes the logits [vocab_size] of the token after each position.
GODWIT_EXPORT godwit_error* godwit_session_logits(godwit_session* session, const int32_t* ids,
                                                  int64_t count,
                                                  const godwit_rows_options* options);
// Computes the hidden state [hidden_size] of each position: the output of the last layer, before
// the model's last norm.
GODWIT_EXPORT godwit_error* godwit_session_hidden_states(godwit_session* session,
                                                         const int32_t* ids, int64_t count,
                                                         const godwit_rows_options* options);

// --- saved texts ---

typedef struct godwit_saved_text {
  const char* id;
  int64_t tokens;            // from the text's beginning
  int64_t bytes;             // without what it shares with texts that begin alike
  const char* model;         // the folder's name
  const char* const* names;  // names under which the text is kept
  int64_t names_count;
} godwit_saved_text;

typedef struct godwit_saved_texts {
  size_t struct_size;
  const godwit_saved_text* texts;
  int64_t count;
} godwit_saved_texts;
// The texts in cache_dir, saved by any process.
GODWIT_EXPORT godwit_error* godwit_engine_list_saved(const godwit_engine* engine,
                                                     godwit_saved_texts** texts);
GODWIT_EXPORT void godwit_saved_texts_free(godwit_saved_texts* texts);
// Removes a saved text and all texts that continue it. removed: whether there was one.
GODWIT_EXPORT godwit_error* godwit_engine_remove_saved(const godwit_engine* engine, const char* id,
                                                       bool* removed);
// Stops keeping the text under that name. stopped: whether something was on the disk.
GODWIT_EXPORT godwit_error* godwit_engine_stop_keeping(const godwit_engine* engine,
                                                       const char* name, bool* stopped);

// --- requests in OpenAI's shape ---

// The options of a godwit_chat.
typedef struct godwit_chat_options {
  size_t struct_size;
  const godwit_session_options* session;  // NULL: the defaults
  const char* model_name;                 // in the answers; NULL: "godwit"
  bool lenient;                           // unknown fields are ignored
} godwit_chat_options;
GODWIT_EXPORT godwit_error* godwit_chat_new(const godwit_engine* engine,
                                            const godwit_chat_options* options, godwit_chat** chat);
GODWIT_EXPORT void godwit_chat_free(godwit_chat* chat);

// Answers one request: the body of /v1/chat/completions or /v1/completions as docs/server-api.md
// has it, with messages, tools, schemas, samples and log-probabilities. A field that it leaves out
// is as the model's makers recommend. answer: the body of the response; with "stream", the last
// chunk.
//
// on_chunk: the callback for each chunk of a request with "stream": true, on the calling thread.
// False cancels. NULL: not wanted. Many threads may call at once.
GODWIT_EXPORT godwit_error* godwit_chat_complete(
    godwit_chat* chat, const char* body, size_t body_bytes,
    bool (*on_chunk)(void* user_data, const char* chunk, size_t chunk_bytes), void* user_data,
    godwit_text** answer);
// Ends all calls in progress with GODWIT_ERROR_CANCELLED, within a moment. Safe in any thread.
GODWIT_EXPORT void godwit_chat_cancel(godwit_chat* chat);

// --- ranks ---

// Serves the requests of rank 0, on every other rank with mpi, until rank 0 gives up its engine.
GODWIT_EXPORT godwit_error* godwit_engine_follow_rank_zero(const godwit_engine* engine);
// Whether the ranks no longer work together, so that no request can be served.
GODWIT_EXPORT godwit_error* godwit_engine_ranks_ended(const godwit_engine* engine, bool* ended);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GODWIT_GODWIT_H_
