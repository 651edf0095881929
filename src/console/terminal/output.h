// The standard streams: results go to standard output, everything about them to standard error.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace godwit::console {

// ClosedPipe: the reader of standard output has gone (`godwit run ... | head`). Not an Error,
// because nobody is left for a message.
struct ClosedPipe {};

// To be called first in main. Writing to a closed pipe, or beyond a size limit, becomes an error of
// the write instead of a signal. No file that is opened later can become standard output.
void PrepareStreams();

// Leaves output to the first of several ranks (dist/mpi.h): results and notices of the others are
// dropped.
void LeaveTalkToRankZero();

// Writes unbuffered, so that text appears as it is generated. A terminal gets text that Printable
// (base/quote.h) has made harmless, anything else every byte. Throws Error(kIo) or ClosedPipe.
void WriteOutput(std::string_view text);

// Writes all bytes to an open file; `name` is for messages. Throws Error(kIo) or ClosedPipe.
void WriteAll(int file, std::span<const std::byte> bytes, const std::string& name);

// Writes to standard error, always Printable, because people read it, if only in a log. Failures
// are ignored: there is nowhere left to report them.
void WriteStatus(std::string_view text);

// Writes to standard error unchanged: for our own escape sequences. A signal handler may call it.
void WriteControl(std::string_view text) noexcept;

// WriteStatus for notices, which --quiet leaves out: warnings, hints, summaries, progress.
// SilenceNotices lasts until the program ends, like the streams' state.
void WriteNotice(std::string_view text);
void SilenceNotices() noexcept;
bool NoticesAreSilent() noexcept;

bool InputIsTerminal();
bool OutputIsTerminal();
bool StatusIsTerminal();

// Whether a person sees notices at once; otherwise only warnings are written.
bool NoticesGoToTerminal();

// The columns for a table on standard output: no limit unless that is a terminal.
size_t TableColumns();

// The columns of the stream's terminal; 80 if unknown.
int OutputColumns();
int StatusColumns();

// Sets the locale for the C library's functions on wide characters: the user's, or another one in
// UTF-8.
void UseUtf8Locale();

}  // namespace godwit::console
