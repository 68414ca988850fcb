// The command line as a whole: its examples, misspelt commands and options, and the progress line.
#include "tools/cli/command_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "tools/cli/progress.hpp"

namespace tilewright::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// The words of a command line up to a redirection; quotes keep words together.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool is_quoted = false, has_word = false;
  for (const char each : line + " ") {
    if (each == '\'') {
      is_quoted = !is_quoted;
      has_word = true;
    } else if (each == ' ' && !is_quoted) {
      if (word == ">") break;
      if (has_word) words.push_back(word);
      word.clear();
      has_word = false;
    } else {
      word += each;
      has_word = true;
    }
  }
  return words;
}

std::string check(std::vector<std::string> words) {
  CLI::App app("test", "tilewright");
  const std::vector<Command> commands = add_commands(app);
  words.insert(words.begin(), "tilewright");
  std::vector<char*> arguments;
  for (std::string& each : words) arguments.push_back(each.data());
  return check_command(app, static_cast<int>(arguments.size()), arguments.data());
}

TEST(CommandLine, ExamplesAreAccepted) {
  for (const Example& example : examples()) {
    CLI::App app("test", "tilewright");
    const std::vector<Command> commands = add_commands(app);
    std::vector<std::string> words = words_of(example.line);
    std::ranges::reverse(words);  // as the parser takes them
    EXPECT_NO_THROW(app.parse(words)) << example.line;
    EXPECT_TRUE(app.got_subcommand(example.line.substr(0, example.line.find(' ')))) << example.line;
    EXPECT_TRUE(example.line.starts_with(example.command)) << example.line;
  }
}

TEST(CommandLine, EveryHelpHasAnExample) {
  CLI::App app("test", "tilewright");
  const std::vector<Command> commands = add_commands(app);
  EXPECT_THAT(app.help(), HasSubstr("Examples:\n  tilewright doctor\n"));
  for (CLI::App* const command : app.get_subcommands({})) {
    EXPECT_THAT(command->help(), HasSubstr("\n  tilewright " + command->get_name())) << command->get_name();
    for (CLI::App* const inner : command->get_subcommands({})) {
      const std::string name = command->get_name() + " " + inner->get_name();
      EXPECT_THAT(inner->help(), HasSubstr("\n  tilewright " + name)) << name;
    }
  }
}

TEST(CommandLine, MisspeltCommandsAreSuggested) {
  EXPECT_EQ(check({"gemm", "--m", "3"}), "");
  EXPECT_EQ(check({"--help"}), "");
  EXPECT_EQ(check({"cache", "ls"}), "");
  EXPECT_EQ(check({"gme"}), "there is no command 'gme': did you mean 'gemm'?");
  EXPECT_EQ(check({"cache", "sl"}), "there is no command 'cache sl': did you mean 'ls'?");
  EXPECT_THAT(check({"anything"}),
              StartsWith("there is no command 'anything': the commands are gemm, conv, contract, run"));
  EXPECT_THAT(check({}), StartsWith("a command is missing: gemm, conv"));
  EXPECT_THAT(check({"a\nb"}), HasSubstr("'a\\x0ab'"));
  EXPECT_EQ(check({"--hepl"}), "there is no option --hepl: did you mean '--help'?");
  EXPECT_THAT(check({"--jsn"}), StartsWith("there is no option --jsn before the command"));
}

TEST(Progress, HasTheTimeThatIsLeft) {
  EXPECT_EQ(progress_text(0, 40, 0.0), "0/40");
  EXPECT_EQ(progress_text(10, 40, 20.0), "10/40, 25 %, 1:00 left");
  EXPECT_EQ(progress_text(39, 40, 39.0), "39/40, 97 %, 0:01 left");
  EXPECT_EQ(progress_text(40, 40, 20.0), "40/40");
}

}  // namespace
}  // namespace tilewright::cli
