// tilewright env: the environment variables that Tilewright reads, with their values and meanings.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "tilewright/base/environment_variables.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/engine/options.hpp"
#include "tools/cli/commands.hpp"

namespace tilewright::cli {
namespace {

void print_text() {
  std::size_t name_width = 0;
  std::size_t value_width = 0;
  std::vector<std::string> values;
  for (const EnvironmentVariable& variable : kEnvironmentVariables) {
    const std::string value = variable.value().value_or(variable.default_value);
    values.push_back(value.empty() ? "(none)" : printable(value));
    name_width = std::max(name_width, std::string_view(variable.name).size());
    value_width = std::max(value_width, values.back().size());
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const EnvironmentVariable& variable = kEnvironmentVariables[i];
    fmt::print("{:<{}}  {:<7}  {:<{}}  {}\n", variable.name, name_width, variable.value() ? "set" : "default",
               values[i], value_width, variable.meaning);
  }
  for (const std::string& name : unknown_environment_variables()) {
    fmt::print("warning: {} is set, but Tilewright reads no variable of this name\n", printable(name));
  }
}

void print_json() {
  nlohmann::ordered_json variables = nlohmann::ordered_json::array();
  for (const EnvironmentVariable& variable : kEnvironmentVariables) {
    variables.push_back({{"name", variable.name},
                         {"value", variable.value().value_or(variable.default_value)},
                         {"set", variable.value().has_value()},
                         {"default", variable.default_value},
                         {"meaning", variable.meaning}});
  }
  const nlohmann::ordered_json json{{"variables", variables}, {"unknown", unknown_environment_variables()}};
  // Names and values may contain bytes that are not UTF-8.
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

ExitCode run(bool json) {
  json ? print_json() : print_text();
  engine::Options::from_environment();  // throws after the list is printed if a value is invalid
  return ExitCode::ok;
}

}  // namespace

Command add_env_command(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "env", "list the environment variables that Tilewright reads, with their values and meanings");
  const auto json = std::make_shared<bool>(false);
  app->add_flag("--json", *json, "print the list as JSON");
  return {app, [json] { return run(*json); }};
}

}  // namespace tilewright::cli
