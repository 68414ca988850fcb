// The command `tilewright`. Exit codes: 0 success, 1 wrong result, 2 bad input, 3 failure of the environment (including
// output that cannot be written), 130 after Ctrl-C, 143 after SIGTERM. Every exit code but 0 comes with one line on
// stderr. If the reader of stdout closes the pipe, SIGPIPE ends the command; a shell shows this as 141.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/base/interruption.hpp"
#include "tools/cli/command_line.hpp"
#include "tools/cli/interrupt_signals.hpp"
#include "tools/cli/standard_streams.hpp"

namespace tilewright::cli {
namespace {

constexpr const char* kFooter =
    "Exit codes: 0 success, 1 wrong result, 2 bad input, 3 the environment failed or the output cannot be written, 130 "
    "interrupted (Ctrl-C), 143 terminated. If the reader of a pipe closes it, SIGPIPE ends the command (141).";

int report(ExitCode code, const std::string& message) {
  say(message);
  return static_cast<int>(code);
}

int report_interruption(int signal) {
  say("interrupted");
  return 128 + signal;
}

int run_chosen(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    if (command.app->parsed()) return static_cast<int>(command.run());
  }
  return report(ExitCode::bad_input, "no command given");
}

int parse_and_run(int argc, char** argv) {
  CLI::App app(
      "Finds, emits, compiles and runs kernels of GEMMs, convolutions and contractions, on a GPU or on an emulator.",
      "tilewright");
  app.set_version_flag("--version", "tilewright " TILEWRIGHT_VERSION);
  app.footer(kFooter);
  app.require_subcommand(1);
  const std::vector<Command> commands = add_commands(app);
  if (const std::string wrong = check_command(app, argc, argv); !wrong.empty())
    return report(ExitCode::bad_input, wrong);
  try {
    app.parse(argc, argv);
    return run_chosen(commands);
  } catch (const CLI::Success& asked) {  // --help, --version
    std::ostringstream text;             // printed as other output is, so that a failed write is reported
    const int code = app.exit(asked, text, text);
    fmt::print("{}", text.str());
    return code;
  } catch (const CLI::ParseError& error) {
    return report(ExitCode::bad_input, explain_parse_error(app, error.what()));
  }
}

int run(int argc, char** argv) {
  const ScopedInterruptCheck interruptible(throw_if_interrupted);
  try {
    const int code = flush_standard_output(parse_and_run(argc, argv));
    return code == 0 && caught_signal() != 0 ? report_interruption(caught_signal()) : code;
  } catch (...) {
    // The signal also reached the child processes, so that the failure is its consequence.
    if (const int signal = caught_signal(); signal != 0) return report_interruption(signal);
    try {
      throw;
    } catch (const InvalidArgument& error) {
      return report(ExitCode::bad_input, error.what());
    } catch (const std::bad_alloc&) {
      return report(ExitCode::environment, "out of host memory");
    } catch (const std::system_error& error) {
      if (std::ferror(stdout) != 0) return flush_standard_output(0, error.code().value());
      return report(ExitCode::environment, error.what());
    } catch (const std::exception& error) {
      return report(ExitCode::environment, error.what());
    }
  }
}

}  // namespace
}  // namespace tilewright::cli

int main(int argc, char** argv) {
  tilewright::cli::prepare_standard_streams();
  tilewright::cli::show_warnings();
  tilewright::cli::catch_interrupt_signals();
  return tilewright::cli::run(argc, argv);
}
