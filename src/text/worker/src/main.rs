//! godwit-text: one tokenizer, one chat template, or the JSON schemas of one model, in a process
//! that can die of it.
//!
//! What a model's files bring is a program: a template loops, a normalizer doubles the text, a
//! regular expression backtracks. The libraries that run it cannot be stopped from outside a
//! thread, and abort where memory runs out. So they run here, under limits of the operating system
//! (limits.rs), and text_worker.cc on the other end of the socket says what became of them.

mod chat;
mod grammar;
mod limits;
mod pieces;
mod plain_words;
mod python;
mod python_methods;
mod requests;
mod stream;
mod tokenizer;

use std::fs::File;
use std::os::fd::FromRawFd;

use limits::Exit;

/// Why a request failed.
pub enum Failure {
    /// The file, the template or an argument is broken.
    Bad(String),
    /// What a user gave is refused: by a template, through raise_exception, or because it is no
    /// schema.
    Raised(String),
}

/// As in worker_protocol.h. The two are built together, but a program may find an older one.
const PROTOCOL: &str = "4";

/// Templates parse runs of operators, and drop nested values, recursively and without a limit of
/// their own: a hundred times the depth of real ones.
const STACK_BYTES: usize = 64 << 20;

/// godwit-text PROTOCOL MEMORY_BYTES, with the socket as standard input.
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [protocol, memory_bytes] = &arguments[..] else { limits::leave(Exit::OtherVersion) };
    if protocol != PROTOCOL {
        limits::leave(Exit::OtherVersion);
    }
    let Ok(memory_bytes) = memory_bytes.parse::<u64>() else { limits::leave(Exit::OtherVersion) };
    limits::apply(memory_bytes + STACK_BYTES as u64);
    // SAFETY: nothing else in this process owns standard input.
    let socket = unsafe { File::from_raw_fd(libc::STDIN_FILENO) };
    let server = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(|| {
        requests::serve(socket);
        limits::leave(Exit::Done);
    });
    if server.is_err() {
        limits::leave(Exit::NoMemory);
    }
    limits::wait_for_hang_up(libc::STDIN_FILENO);
    limits::leave(Exit::Done);
}
