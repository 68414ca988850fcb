// The standard streams of the command: results go to stdout, for programs to read; all else goes to stderr.
#pragma once

#include <string_view>

namespace tilewright::cli {

/// To be called first. Opens the standard streams that the caller left closed, so that no file that is opened later
/// becomes one of them; what is printed to a closed stdout fails. Writing to a pipe that nobody reads fails from now on
/// and does not kill; child processes are killed as ever.
void prepare_standard_streams();

/// "tilewright: MESSAGE" on stderr. Where that cannot be written the exit code alone says what happened.
void say(std::string_view message);

/// Shows what the library logs as warning or error on stderr, each text once: "tilewright: warning: ...".
void show_warnings();

/// Writes out what is buffered for stdout. Gives `code`, or where that is 0 and something could not be written,
/// ExitCode::environment after a line on stderr. `cause`: the errno of an earlier failure, where known. Where stdout is
/// a pipe that nobody reads any more the process ends by SIGPIPE, without a word.
int flush_standard_output(int code, int cause = 0);

}  // namespace tilewright::cli
