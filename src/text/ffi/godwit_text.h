/* The C ABI of the Rust crate beside this file: Hugging Face `tokenizers` and `minijinja`.
 *
 * Text is UTF-8 with an explicit size and may hold zero bytes; input must be valid UTF-8.
 * A function that can fail returns a status and, unless that is GODWIT_TEXT_OK, has written only
 * *error. What it hands out belongs to the caller and goes back through the matching free function;
 * a view belongs to its handle and lives until the next call on that handle.
 * Tokenizers and templates are immutable: any number of threads may share one. A stream belongs to
 * one thread at a time and keeps its tokenizer alive. No Rust panic crosses this boundary: it
 * arrives as GODWIT_TEXT_BAD with its message.
 */
#ifndef GODWIT_TEXT_H_
#define GODWIT_TEXT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  GODWIT_TEXT_OK = 0,
  GODWIT_TEXT_BAD = 1,    /* the file, the template or an argument is broken */
  GODWIT_TEXT_RAISED = 2, /* the template called raise_exception: it refuses these messages */
} godwit_text_status;

typedef struct {
  const char* data;
  size_t size;
} godwit_text_view;

typedef struct {
  char* data; /* NULL where size is 0 */
  size_t size;
} godwit_text_string;

typedef struct {
  uint32_t* data; /* NULL where size is 0 */
  size_t size;
} godwit_text_ids;

typedef struct godwit_tokenizer godwit_tokenizer;
typedef struct godwit_stream godwit_stream;
typedef struct godwit_template godwit_template;

void godwit_text_string_free(godwit_text_string text);
void godwit_text_ids_free(godwit_text_ids ids);

/* `json` is the content of tokenizer.json. Truncation and padding stored there are switched off:
 * they belong to training batches. */
godwit_text_status godwit_tokenizer_new(godwit_text_view json, godwit_tokenizer** out,
                                        godwit_text_string* error);
void godwit_tokenizer_free(godwit_tokenizer* tokenizer);

/* Replaces the post-processor by [bos] text [eos]; an empty view leaves that token out.
 * Call it before the tokenizer is shared. */
godwit_text_status godwit_tokenizer_set_bos_eos(godwit_tokenizer* tokenizer, godwit_text_view bos,
                                                godwit_text_view eos, godwit_text_string* error);

godwit_text_status godwit_tokenizer_encode(const godwit_tokenizer* tokenizer, godwit_text_view text,
                                           bool add_special_tokens, godwit_text_ids* out,
                                           godwit_text_string* error);
/* Ids without a token decode to nothing. */
godwit_text_status godwit_tokenizer_decode(const godwit_tokenizer* tokenizer, const uint32_t* ids,
                                           size_t size, bool skip_special_tokens,
                                           godwit_text_string* out, godwit_text_string* error);

/* One more than the highest token id. */
size_t godwit_tokenizer_vocab_size(const godwit_tokenizer* tokenizer);
bool godwit_tokenizer_is_special(const godwit_tokenizer* tokenizer, uint32_t id);
/* The token as the vocabulary spells it; false where the id has none. */
bool godwit_tokenizer_id_to_token(const godwit_tokenizer* tokenizer, uint32_t id,
                                  godwit_text_string* out);
/* -1 where there is none. */
int64_t godwit_tokenizer_token_to_id(const godwit_tokenizer* tokenizer, godwit_text_view token);

godwit_stream* godwit_stream_new(const godwit_tokenizer* tokenizer, bool skip_special_tokens);
void godwit_stream_free(godwit_stream* stream);
/* The text that has become certain. */
godwit_text_status godwit_stream_push(godwit_stream* stream, uint32_t id, godwit_text_view* out,
                                      godwit_text_string* error);
/* The rest; the stream is then as new. */
godwit_text_status godwit_stream_flush(godwit_stream* stream, godwit_text_view* out,
                                       godwit_text_string* error);

godwit_text_status godwit_template_new(godwit_text_view source, godwit_template** out,
                                       godwit_text_string* error);
void godwit_template_free(godwit_template* chat);
/* `variables` is a JSON object: every global that the template may see.
 * `now_unix_s` is the time that strftime_now() tells, in the local time zone. */
godwit_text_status godwit_template_render(const godwit_template* chat, godwit_text_view variables,
                                          int64_t now_unix_s, godwit_text_string* out,
                                          godwit_text_string* error);

#ifdef __cplusplus
}
#endif

#endif
