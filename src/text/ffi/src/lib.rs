//! The C ABI declared in godwit_text.h, and nothing else: each function translates its arguments,
//! calls one of the modules and turns an error or a panic into a status.

mod chat;
mod python;
mod python_methods;
mod stream;
mod tokenizer;

use std::any::Any;
use std::cell::RefCell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Once};

use chat::ChatTemplate;
use stream::Stream;
use tokenizer::Tokenizer;

/// Why a call failed.
pub enum Failure {
    /// The file, the template or an argument is broken.
    Bad(String),
    /// The template itself refused its input through raise_exception.
    Raised(String),
}

#[repr(C)]
#[derive(PartialEq, Eq)]
pub enum Status {
    Ok = 0,
    Bad = 1,
    Raised = 2,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct View {
    data: *const u8,
    size: usize,
}

/// A boxed slice in the shape of C: godwit_text_string and godwit_text_ids.
#[repr(C)]
pub struct Owned<T> {
    data: *mut T,
    size: usize,
}

impl<T> Owned<T> {
    fn new(items: Vec<T>) -> Self {
        if items.is_empty() {
            return Owned { data: std::ptr::null_mut(), size: 0 };
        }
        let items = Box::leak(items.into_boxed_slice());
        Owned { data: items.as_mut_ptr(), size: items.len() }
    }

    unsafe fn release(self) {
        if !self.data.is_null() {
            drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.data, self.size)));
        }
    }
}

impl View {
    fn of(text: &str) -> Self {
        View { data: text.as_ptr(), size: text.len() }
    }

    unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.size == 0 {
            return &[];
        }
        std::slice::from_raw_parts(self.data, self.size)
    }

    unsafe fn text<'a>(self) -> Result<&'a str, Failure> {
        std::str::from_utf8(self.bytes()).map_err(|e| {
            Failure::Bad(format!("not UTF-8: invalid byte at offset {}", e.valid_up_to()))
        })
    }
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

fn describe(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&str>() {
        return text;
    }
    payload.downcast_ref::<String>().map_or("unknown panic", |text| text.as_str())
}

/// Runs `body`, storing its value in `out`. The default panic hook prints; a library must not.
unsafe fn guard<T>(
    out: *mut T,
    error: *mut Owned<u8>,
    body: impl FnOnce() -> Result<T, Failure>,
) -> Status {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            let place = info.location().map(|at| format!(" ({}:{})", at.file(), at.line()));
            let message = format!("{}{}", describe(info.payload()), place.unwrap_or_default());
            PANIC.with(|slot| *slot.borrow_mut() = Some(message));
        }));
    });
    let (status, message) = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => {
            out.write(value);
            return Status::Ok;
        }
        Ok(Err(Failure::Bad(message))) => (Status::Bad, message),
        Ok(Err(Failure::Raised(message))) => (Status::Raised, message),
        Err(payload) => {
            let said = PANIC.with(|slot| slot.borrow_mut().take());
            let said = said.unwrap_or_else(|| describe(payload.as_ref()).to_string());
            (Status::Bad, format!("internal failure: {said}"))
        }
    };
    error.write(Owned::new(message.into_bytes()));
    status
}

#[no_mangle]
pub unsafe extern "C" fn godwit_text_string_free(text: Owned<u8>) {
    text.release();
}

#[no_mangle]
pub unsafe extern "C" fn godwit_text_ids_free(ids: Owned<u32>) {
    ids.release();
}

#[no_mangle]
pub unsafe extern "C" fn godwit_tokenizer_new(
    json: View,
    out: *mut *mut Arc<Tokenizer>,
    error: *mut Owned<u8>,
) -> Status {
    guard(out, error, || Ok(Box::into_raw(Box::new(Arc::new(Tokenizer::new(json.text()?)?)))))
}

#[no_mangle]
pub unsafe extern "C" fn godwit_tokenizer_free(tokenizer: *mut Arc<Tokenizer>) {
    if !tokenizer.is_null() {
        drop(Box::from_raw(tokenizer));
    }
}

#[no_mangle]
pub unsafe extern "C" fn godwit_tokenizer_set_bos_eos(
    tokenizer: *mut Arc<Tokenizer>,
    bos: View,
    eos: View,
    error: *mut Owned<u8>,
) -> Status {
    guard(&mut (), error, || {
        let shared = || Failure::Bad("the tokenizer is already shared".to_string());
        let tokenizer = Arc::get_mut(&mut *tokenizer).ok_or_else(shared)?;
        tokenizer.set_bos_eos(bos.text()?, eos.text()?)
    })
}

#[no_mangle]
pub unsafe extern "C" fn godwit_tokenizer_encode(
    tokenizer: *const Arc<Tokenizer>,
    text: View,
    add_special_tokens: bool,
    out: *mut Owned<u32>,
    error: *mut Owned<u8>,
) -> Status {
    guard(out, error, || Ok(Owned::new((*tokenizer).encode(text.text()?, add_special_tokens)?)))
}

#[no_mangle]
pub unsafe extern "C" fn godwit_tokenizer_decode(
    tokenizer: *const Arc<Tokenizer>,
    ids: *const u32,
    size: usize,
    skip_special_tokens: bool,
    out: *mut Owned<u8>,
    error: *mut Owned<u8>,
) -> Status {
    guard(out, error, || {
        let ids = if size == 0 { &[] } else { std::slice::from_raw_parts(ids, size) };
        Ok(Owned::new((*tokenizer).decode(ids, skip_special_tokens)?.into_bytes()))
    })
}

#[no_mangle]
pub unsafe extern "C" fn godwit_tokenizer_vocab_size(tokenizer: *const Arc<Tokenizer>) -> usize {
    (*tokenizer).vocab_size()
}

#[no_mangle]
pub unsafe extern "C" fn godwit_tokenizer_is_special(
    tokenizer: *const Arc<Tokenizer>,
    id: u32,
) -> bool {
    (*tokenizer).is_special(id)
}

#[no_mangle]
pub unsafe extern "C" fn godwit_tokenizer_id_to_token(
    tokenizer: *const Arc<Tokenizer>,
    id: u32,
    out: *mut Owned<u8>,
) -> bool {
    let token = (*tokenizer).id_to_token(id);
    let found = token.is_some();
    out.write(Owned::new(token.unwrap_or_default().into_bytes()));
    found
}

#[no_mangle]
pub unsafe extern "C" fn godwit_tokenizer_token_to_id(
    tokenizer: *const Arc<Tokenizer>,
    token: View,
) -> i64 {
    let token = token.text().ok();
    token.and_then(|token| (*tokenizer).token_to_id(token)).map_or(-1, i64::from)
}

#[no_mangle]
pub unsafe extern "C" fn godwit_stream_new(
    tokenizer: *const Arc<Tokenizer>,
    skip_special_tokens: bool,
) -> *mut Stream {
    Box::into_raw(Box::new(Stream::new(Arc::clone(&*tokenizer), skip_special_tokens)))
}

#[no_mangle]
pub unsafe extern "C" fn godwit_stream_free(stream: *mut Stream) {
    if !stream.is_null() {
        drop(Box::from_raw(stream));
    }
}

#[no_mangle]
pub unsafe extern "C" fn godwit_stream_push(
    stream: *mut Stream,
    id: u32,
    out: *mut View,
    error: *mut Owned<u8>,
) -> Status {
    guard(out, error, || Ok(View::of((*stream).push(id)?)))
}

#[no_mangle]
pub unsafe extern "C" fn godwit_stream_flush(
    stream: *mut Stream,
    out: *mut View,
    error: *mut Owned<u8>,
) -> Status {
    guard(out, error, || Ok(View::of((*stream).flush()?)))
}

#[no_mangle]
pub unsafe extern "C" fn godwit_template_new(
    source: View,
    out: *mut *mut ChatTemplate,
    error: *mut Owned<u8>,
) -> Status {
    guard(out, error, || Ok(Box::into_raw(Box::new(ChatTemplate::new(source.text()?)?))))
}

#[no_mangle]
pub unsafe extern "C" fn godwit_template_free(chat: *mut ChatTemplate) {
    if !chat.is_null() {
        drop(Box::from_raw(chat));
    }
}

#[no_mangle]
pub unsafe extern "C" fn godwit_template_render(
    chat: *const ChatTemplate,
    variables: View,
    now_unix_s: i64,
    out: *mut Owned<u8>,
    error: *mut Owned<u8>,
) -> Status {
    guard(out, error, || {
        Ok(Owned::new((*chat).render(variables.text()?, now_unix_s)?.into_bytes()))
    })
}
