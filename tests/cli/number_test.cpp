// Numbers on the command line: every option of every command that takes a number refuses the same malformed texts.
#include "tools/cli/number.hpp"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tools/cli/commands.hpp"

namespace tilewright::cli {
namespace {

std::string refusal_of(const std::function<void()>& parse) {
  try {
    parse();
    return "accepted";
  } catch (const InvalidArgument& error) {
    return error.what();
  } catch (const CLI::Error& error) {
    return std::string("an error of the parser itself: ") + error.what();
  }
}

// An option and the commands and subcommands that lead to it.
struct NumberOption {
  std::vector<std::string> commands;
  std::string name;
  bool is_real = false;
};

void collect(CLI::App& app, std::vector<std::string> commands, std::vector<NumberOption>& found) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (type == "INT" || type == "UINT" || type == "FLOAT" || type == "NUMBER") {
      found.push_back({commands, option->get_name(), type == "FLOAT" || type == "NUMBER"});
    }
  }
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    std::vector<std::string> deeper = commands;
    deeper.push_back(command->get_name());
    collect(*command, deeper, found);
  }
}

/// `commands` must outlive the parse: it owns the variables that the options are parsed into.
std::vector<Command> add_commands(CLI::App& app) {
  std::vector<Command> commands;
  for (const auto add : {add_gemm_command, add_find_command, add_tune_command, add_emit_command, add_layout_command,
                         add_cache_command, add_doctor_command, add_env_command}) {
    commands.push_back(add(app));
  }
  return commands;
}

std::string parse(const NumberOption& option, const std::string& text, bool as_one_word) {
  CLI::App app;
  const std::vector<Command> commands = add_commands(app);
  std::vector<std::string> line = option.commands;
  if (as_one_word) {
    line.push_back(option.name + "=" + text);
  } else {
    line.insert(line.end(), {option.name, text});
  }
  std::reverse(line.begin(), line.end());  // CLI11 takes the arguments in reverse order
  return refusal_of([&] { app.parse(line); });
}

TEST(Numbers, EveryOptionOfEveryCommandRefusesMalformedNumbers) {
  CLI::App app;
  const std::vector<Command> commands = add_commands(app);
  std::vector<NumberOption> options;
  collect(app, {}, options);
  std::set<std::string> names;
  for (const NumberOption& option : options) names.insert(option.name);
  for (const char* name : {"--m", "--n", "--k", "--batch", "--seed", "--lda", "--ldb", "--ldc", "--ldd", "--alpha",
                           "--beta", "--stages", "--raster-width", "--split-k", "--bits", "--top", "--seconds"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  const std::vector<std::string> never{"",      " 1",    "1 ",  "\t1",  "+1",     "0x10", "1_000", "1,5",
                                       "1'000", "1\n",   "one", "--1",  "1e",     ".",    "-",     "\xd9\xa3",
                                       "1 2",   "1.5.2", "NaN", "nan0", "nan(1)", "INF",  "+inf",  "infinity"};
  const std::vector<std::string> no_integer{"-1", "1.0", "1e3", "nan", "inf", "18446744073709551616", "-0.0"};
  const std::vector<std::string> no_real{"1e400", "-1e400", "1e-400", "0x1p3", "1e+"};
  for (const NumberOption& option : options) {
    std::vector<std::string> refused = never;
    refused.insert(refused.end(), (option.is_real ? no_real : no_integer).begin(),
                   (option.is_real ? no_real : no_integer).end());
    for (const std::string& text : refused) {
      const std::string says = parse(option, text, false);
      EXPECT_EQ(says.find(option.name + " takes a"), 0U) << option.name << " '" << text << "': " << says;
      if (!text.empty()) {  // the parser itself refuses "--m=", an option without a value
        EXPECT_EQ(parse(option, text, true), says) << option.name << "=" << text;
      }
    }
  }
}

TEST(Numbers, TheMessageNamesOptionRangeAndText) {
  EXPECT_EQ(refusal_of([] { parse_integer<int>("--top", "", {1, 8}); }), "--top takes an integer from 1 to 8, got ''");
  EXPECT_EQ(refusal_of([] { parse_integer<std::int64_t>("--lda", "9223372036854775808", {}); }),
            "--lda takes an integer from 1 to 9223372036854775807, got '9223372036854775808'");
  EXPECT_EQ(refusal_of([] { parse_integer<std::uint64_t>("--seed", "-1", {.least = 0}); }),
            "--seed takes an integer from 0 to 18446744073709551615, got '-1'");
  EXPECT_EQ(refusal_of([] { parse_real("--alpha", "1e400"); }),
            "--alpha takes a number that is 0 or has a magnitude from 4.9e-324 to 1.7e308, got '1e400'");
  EXPECT_EQ(refusal_of([] { parse_real("--alpha", "1\x1b"); }),
            "--alpha takes a number such as -0.5 or 1e-3, or nan, inf or -inf, got '1\\x1b'");
}

TEST(Numbers, AreReadExactly) {
  EXPECT_EQ(parse_integer<int>("-x", "0", {0, 5}), 0);
  EXPECT_EQ(parse_integer<int>("-x", "005", {0, 5}), 5);
  EXPECT_EQ(parse_integer<int>("-x", "-3", {-3, 5}), -3);
  EXPECT_EQ(parse_integer<std::int64_t>("-x", "9223372036854775807", {}), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_integer<std::uint64_t>("-x", "18446744073709551615", {}), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse_real("-x", "1"), 1.0);
  EXPECT_EQ(parse_real("-x", "-.5e-1"), -0.05);
  EXPECT_EQ(parse_real("-x", "1.7976931348623157e308"), std::numeric_limits<double>::max());
  EXPECT_EQ(parse_real("-x", "5e-324"), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(parse_real("-x", "0e999"), 0.0);
  EXPECT_TRUE(std::signbit(parse_real("-x", "-0")));
  EXPECT_TRUE(std::isnan(parse_real("-x", "nan")));
  EXPECT_EQ(parse_real("-x", "inf"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(parse_real("-x", "-inf"), -std::numeric_limits<double>::infinity());
}

TEST(Numbers, OptionsTakeNegativeNumbers) {
  const NumberOption alpha{{"gemm"}, "--alpha", true};
  for (const char* text : {"-1", "-inf", "-.5", "nan"}) {
    for (const bool as_one_word : {false, true}) EXPECT_EQ(parse(alpha, text, as_one_word), "accepted") << text;
  }
}

}  // namespace
}  // namespace tilewright::cli
