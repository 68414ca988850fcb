// tilewright completion: scripts with which shells complete commands and options.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"
#include "tools/cli/command_line.hpp"

namespace tilewright::cli {
namespace {

using Apps = std::vector<const CLI::App*>;

Apps commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> words_of(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::App* const command : commands_of(app)) words.push_back(command->get_name());
  for (std::string& option : options_of(app)) words.push_back(std::move(option));
  return words;
}

/// A case for each command, and for each pair of a command and one of its own: "cache ls".
std::string bash_script(const CLI::App& app) {
  std::string cases;
  for (const CLI::App* const command : commands_of(app)) {
    for (const CLI::App* const inner : commands_of(*command)) {
      cases += fmt::format("    '{} {}') words='{}' ;;\n", command->get_name(), inner->get_name(),
                           fmt::join(words_of(*inner), " "));
    }
    cases += fmt::format("    '{}'|'{} '*) words='{}' ;;\n", command->get_name(), command->get_name(),
                         fmt::join(words_of(*command), " "));
  }
  return fmt::format(
      "# Completion of tilewright for bash; zsh: autoload bashcompinit && bashcompinit\n"
      "_tilewright() {{\n"
      "  local words current=\"${{COMP_WORDS[COMP_CWORD]}}\"\n"
      "  case \"${{COMP_WORDS[1]}}$([ \"$COMP_CWORD\" -gt 2 ] && printf ' %s' \"${{COMP_WORDS[2]}}\")\" in\n{}"
      "    *) words='{}' ;;\n"
      "  esac\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then words='{}'; fi\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  case \"$current\" in -*) ;; *) COMPREPLY+=($(compgen -f -- \"$current\")) ;; esac\n"
      "}}\n"
      "complete -o filenames -F _tilewright tilewright\n",
      cases, fmt::join(words_of(app), " "), fmt::join(words_of(app), " "));
}

std::string quoted(std::string text) {
  std::string line;
  for (const char each : text.substr(0, text.find('\n'))) {
    if (each == '\'' || each == '\\') line += '\\';
    line += each;
  }
  return "'" + line + "'";
}

std::string fish_script(const CLI::App& app) {
  std::string script = "# Completion of tilewright for fish\n";
  for (const CLI::App* const command : commands_of(app)) {
    const std::string name = command->get_name();
    script += fmt::format("complete -c tilewright -n __fish_use_subcommand -a {} -d {}\n", name,
                          quoted(command->get_description()));
    for (const CLI::App* const inner : commands_of(*command)) {
      script += fmt::format("complete -c tilewright -n '__fish_seen_subcommand_from {}' -a {} -d {}\n", name,
                            inner->get_name(), quoted(inner->get_description()));
    }
    for (const CLI::Option* const option : command->get_options()) {
      for (const std::string& each : option->get_lnames()) {
        script += fmt::format("complete -c tilewright -n '__fish_seen_subcommand_from {}' -l {} -d {}\n", name, each,
                              quoted(option->get_description()));
      }
    }
  }
  return script;
}

}  // namespace

Command add_completion_command(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("completion", "print a script with which a shell completes commands");
  const auto shell = std::make_shared<std::string>();
  app->add_option("shell", *shell, "bash, zsh or fish")->required();
  const CLI::App* const root = &parent;
  return {app, [shell, root] {
            if (*shell == "bash") {
              fmt::print("{}", bash_script(*root));
            } else if (*shell == "zsh") {
              fmt::print("autoload -U +X bashcompinit && bashcompinit\n{}", bash_script(*root));
            } else if (*shell == "fish") {
              fmt::print("{}", fish_script(*root));
            } else {
              throw InvalidArgument(fmt::format("shell must be bash, zsh or fish, got '{}'", printable(*shell, 40)));
            }
            return ExitCode::ok;
          }};
}

}  // namespace tilewright::cli
