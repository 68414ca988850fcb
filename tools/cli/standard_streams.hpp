// The standard streams of the command. Results go to stdout, all other messages to stderr.
#pragma once

#include <string_view>

namespace tilewright::cli {

/// Must be called first. Opens the standard streams that the parent process left closed, so that no file that is opened
/// later gets their descriptors; printing to a closed stdout still fails. Makes writes to a pipe without a reader fail
/// instead of ending the process; child processes keep the default, SIGPIPE.
void prepare_standard_streams();

/// Prints "tilewright: MESSAGE" on stderr. Errors of this output are ignored.
void say(std::string_view message);

/// Prints the library's warnings and errors on stderr, each text once: "tilewright: warning: ...".
void show_warnings();

/// Flushes stdout and returns `code`. If `code` is 0 and output could not be written, prints the cause on stderr and
/// returns ExitCode::environment; `cause` is the errno of an earlier failure, if known. If stdout is a pipe without a
/// reader, SIGPIPE ends the process without a message.
int flush_standard_output(int code, int cause = 0);

}  // namespace tilewright::cli
