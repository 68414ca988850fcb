// The command `tilewright`. Exit codes: 0 ok, 1 wrong result, 2 bad input, 3 environment; one line on stderr for each
// that is not 0.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tools/cli/commands.hpp"

namespace tilewright::cli {
namespace {

int report(ExitCode code, const std::string& message) {
  fmt::print(stderr, "tilewright: {}\n", message);
  return static_cast<int>(code);
}

// The parser's own messages may have several lines; the first says it.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

int run_chosen(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    if (command.app->parsed()) return static_cast<int>(command.run());
  }
  return report(ExitCode::bad_input, "no command given");
}

int run(int argc, char** argv) {
  CLI::App app("GEMM kernels described, found, emitted, compiled and run, on a GPU or on an emulator", "tilewright");
  app.set_version_flag("--version", "tilewright " TILEWRIGHT_VERSION);
  app.require_subcommand(1);
  const std::vector<Command> commands{add_gemm_command(app),   add_find_command(app),   add_tune_command(app),
                                      add_emit_command(app),   add_layout_command(app), add_cache_command(app),
                                      add_doctor_command(app), add_env_command(app)};
  try {
    app.parse(argc, argv);
    return run_chosen(commands);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return report(ExitCode::bad_input, first_line(error.what()));
  } catch (const InvalidArgument& error) {
    return report(ExitCode::bad_input, error.what());
  } catch (const std::bad_alloc&) {
    return report(ExitCode::environment, "out of host memory");
  } catch (const std::exception& error) {
    return report(ExitCode::environment, error.what());
  }
}

}  // namespace
}  // namespace tilewright::cli

int main(int argc, char** argv) {
  // Results are on stdout, for programs to read; what the library logs goes to stderr.
  spdlog::set_default_logger(spdlog::stderr_logger_mt("tilewright"));
  spdlog::set_level(spdlog::level::err);
  return tilewright::cli::run(argc, argv);
}
