// The command line: its commands, their examples, and what is said about misspelt ones.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/commands.hpp"

namespace tilewright::cli {

/// Adds every command, with the examples in its help.
std::vector<Command> add_commands(CLI::App& app);

/// An example of a command line in a help text, without the name of the program.
struct Example {
  std::string command;  // the command that it belongs to: "gemm", "cache ls"
  std::string line;     // "gemm --m 64 --n 64 --k 64 --verify"
};
const std::vector<Example>& examples();

/// What is wrong with the first argument, if it is no command and no option: empty if nothing is.
std::string check_command(const CLI::App& app, int argc, char** argv);

/// The message of a parse error, with the option that was probably meant.
std::string explain_parse_error(const CLI::App& app, const std::string& message);

/// Prints the script with which a shell completes commands and options.
Command add_completion_command(CLI::App& parent);

}  // namespace tilewright::cli
