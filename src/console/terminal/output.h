// The three standard streams: results go to standard output, everything said about them to standard
// error.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace godwit::console {

// The reader of standard output has gone (`godwit run ... | head`): nobody is left to be told.
// Not an Error, since there is no message.
struct ClosedPipe {};

// First thing in main: writing to a closed pipe, or beyond a size limit, becomes an error of the
// write instead of a signal, and no file that is opened later can end up as standard output.
void PrepareStreams();

// Of several ranks (dist/mpi.h) the first one speaks: the others' results and notices go nowhere.
void LeaveTalkToRankZero();

// Unbuffered, so that text appears as it is generated. A terminal gets it as Printable
// (base/quote.h) makes it harmless, anything else every byte. Throws Error(kIo) or ClosedPipe.
void WriteOutput(std::string_view text);

// Writes all of it to an open file; `name` is for messages. Throws Error(kIo) or ClosedPipe.
void WriteAll(int file, std::span<const std::byte> bytes, const std::string& name);

// To standard error, always Printable: people read it, if only in a log. Failures are ignored, as
// there is nowhere left to report them.
void WriteStatus(std::string_view text);

// Likewise, but as it is: for our own escape sequences. May be called by a signal handler.
void WriteControl(std::string_view text) noexcept;

// As WriteStatus, for what --quiet leaves out: warnings, hints, summaries, progress. SilenceNotices
// lasts as long as the program, as what the streams are does.
void WriteNotice(std::string_view text);
void SilenceNotices() noexcept;
bool NoticesAreSilent() noexcept;

bool InputIsTerminal();
bool OutputIsTerminal();
bool StatusIsTerminal();

// Whether somebody sees notices at once: only then they are more than warnings.
bool NoticesGoToTerminal();

// Columns that a table on standard output has room for: any number, where that is no terminal.
size_t TableColumns();

// Columns of the terminal on that stream; 80 if unknown.
int OutputColumns();
int StatusColumns();

// For the C library's functions of wide characters: the user's locale, or another one in UTF-8.
void UseUtf8Locale();

}  // namespace godwit::console
