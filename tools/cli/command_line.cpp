#include "tools/cli/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <sstream>

#include "tilewright/base/spelling.hpp"
#include "tilewright/base/text.hpp"

namespace tilewright::cli {
namespace {

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

/// The command that was parsed, at the deepest level.
const CLI::App& parsed_command(const CLI::App& app) {
  for (const CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->parsed()) return parsed_command(*command);
  }
  return app;
}

/// As the caller writes it: "cache ls".
std::string name_of(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return parent == nullptr || parent->get_parent() == nullptr ? command.get_name()
                                                              : name_of(*parent) + " " + command.get_name();
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

}  // namespace

const std::vector<Example>& examples() {
  static const std::vector<Example> all{
      {"", "doctor"},
      {"", "gemm --m 512 --n 256 --k 128 --dtype f16 --epilogue relu --verify"},
      {"gemm", "gemm --m 512 --n 256 --k 128 --dtype f16 --epilogue relu --verify"},
      {"gemm", "gemm --a a.npy --b b.npy --out d.npy"},
      {"conv", "conv --n 1 --h 16 --w 16 --c 16 --k 32 --r 3 --s 3 --padding 1 --verify"},
      {"contract", "contract 'abk,kcd->abcd' --extents a=8,b=4,c=16,d=8,k=32 --dtype f16 --verify"},
      {"run", "run --problem problem.json --verify"},
      {"find", "find --m 4096 --n 4096 --k 4096 --dtype bf16 --target sm_90a --explain"},
      {"tune", "tune --m 4096 --n 4096 --k 4096 --dtype bf16 --top 16"},
      {"tune", "tune --list --json"},
      {"emit", "emit --m 512 --n 512 --k 512 --dtype f16 --target sm_90a --stats"},
      {"emit", "emit --m 512 --n 512 --k 512 --dtype f16 --target sm_90a --stats --json"},
      {"layout", "layout eval 'composition((8,8):(8,1), (4,2):(2,1))'"},
      {"cache", "cache ls --json"},
      {"cache", "cache export kernels.db"},
      {"cache ls", "cache ls --json"},
      {"cache verify", "cache verify"},
      {"cache clear", "cache clear"},
      {"cache export", "cache export kernels.db"},
      {"cache import", "cache import kernels.db"},
      {"layout eval", "layout eval 'composition((8,8):(8,1), (4,2):(2,1))'"},
      {"layout draw", "layout draw '(8,8):(8,1)'"},
      {"layout functions", "layout functions --json"},
      {"emulate", "emulate reduce.cu --grid 2 --block 64 --args 'x:f32[128]=1,out:f32[2]'"},
      {"emulate run", "emulate run -- ./program arguments"},
      {"doctor", "doctor --json"},
      {"env", "env --json"},
      {"completion", "completion bash > /etc/bash_completion.d/tilewright"},
  };
  return all;
}

std::vector<Command> add_commands(CLI::App& app) {
  std::vector<Command> commands{add_gemm_command(app),    add_conv_command(app),    add_contract_command(app),
                                add_run_command(app),     add_find_command(app),    add_tune_command(app),
                                add_profile_command(app), add_report_command(app),  add_emit_command(app),
                                add_layout_command(app),  add_cache_command(app),   add_doctor_command(app),
                                add_env_command(app),     add_emulate_command(app), add_completion_command(app)};
  std::map<std::string, std::string> footers;
  for (const Example& example : examples()) {
    std::string& footer = footers[example.command];
    footer += (footer.empty() ? "Examples:" : "") + std::string("\n  tilewright ") + example.line;
  }
  for (const auto& [name, footer] : footers) {
    CLI::App* command = &app;
    std::istringstream words(name);
    for (std::string word; words >> word;) command = command->get_subcommand(word);
    const std::string own = command->get_footer();
    command->footer(own.empty() ? footer : own + "\n" + footer);
  }
  return commands;
}

std::string check_command(const CLI::App& app, int argc, char** argv) {
  const std::vector<std::string> known = names_of_commands(app);
  if (argc < 2) return fmt::format("a command is missing: {}; see tilewright --help", fmt::join(known, ", "));
  const auto check = [](const std::string& before, const std::string& word, const std::vector<std::string>& names) {
    if (word.starts_with('-') || std::ranges::find(names, word) != names.end()) return std::string();
    const std::string meant =
        word == "help" ? fmt::format(": see tilewright {}--help", before) : suggestion(word, names);
    return fmt::format("there is no command '{}{}'{}", before, printable(word, 60),
                       meant.empty() ? fmt::format(": the commands are {}", fmt::join(names, ", ")) : meant);
  };
  const std::string word = argv[1], option = word.substr(0, word.find('='));
  const std::vector<std::string> options = options_of(app);
  if (option.starts_with("--") && std::ranges::find(options, option) == options.end()) {
    const std::string meant = suggestion(option, options);
    return fmt::format("there is no option {}{}", printable(option, 60),
                       meant.empty() ? " before the command; see tilewright --help" : meant);
  }
  if (std::string wrong = check("", word, known); !wrong.empty() || word.starts_with('-') || argc < 3) return wrong;
  const CLI::App& command = *app.get_subcommand(word);
  // A command that needs no command of its own, such as emulate, may also take values.
  if (command.get_require_subcommand_min() == 0) return {};
  return check(word + " ", argv[2], names_of_commands(command));
}

std::string explain_parse_error(const CLI::App& app, const std::string& message) {
  const std::string line = message.substr(0, message.find('\n'));
  constexpr std::string_view kUnexpected = "not expected: ";
  const std::size_t place = line.find(kUnexpected);
  const CLI::App& command = parsed_command(app);
  if (line == "A subcommand is required") {
    return fmt::format("tilewright {} needs one of the commands {}", command.get_name(),
                       fmt::join(names_of_commands(command), ", "));
  }
  const std::string help = fmt::format("; see tilewright {} --help", name_of(command));
  constexpr std::string_view kMissing = " is required";
  if (line.ends_with(kMissing)) {
    const std::string name = line.substr(0, line.size() - kMissing.size());
    const CLI::Option* const option = command.get_option_no_throw(name);
    return fmt::format("{} is missing{}{}{}", name, option == nullptr ? "" : ": ",
                       option == nullptr ? "" : option->get_description(), help);
  }
  if (const std::size_t limit = line.find(": At Most 1 required"); limit != std::string::npos)
    return line.substr(0, limit) + " is given more than once";
  constexpr std::string_view kNoValue = ": 1 required ", kLacking = " missing";
  if (const std::size_t value = line.find(kNoValue); value != std::string::npos && line.ends_with(kLacking)) {
    const std::size_t begin = value + kNoValue.size();
    return fmt::format("{} takes a value, {}{}", line.substr(0, value),
                       line.substr(begin, line.size() - kLacking.size() - begin), help);
  }
  if (place == std::string::npos) return line;
  // The parser lists values before options. The first option is what was misspelt; its value is left over, too.
  const std::string words = line.substr(place + kUnexpected.size());
  const std::size_t option = words.find("--");
  if (option == std::string::npos)
    return fmt::format("tilewright {} takes no value '{}'{}", name_of(command), printable(words, 60), help);
  const std::string word = words.substr(option, words.find_first_of(" =", option) - option);
  const std::string meant = suggestion(word, options_of(command));
  return fmt::format("there is no option {}{}", printable(word, 60), meant.empty() ? help : meant);
}

}  // namespace tilewright::cli
