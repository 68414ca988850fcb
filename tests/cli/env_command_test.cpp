// The command tilewright env: its list, its warnings and what it refuses.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>

#include "tilewright/base/environment_variables.hpp"
#include "tilewright/base/error.hpp"
#include "tools/cli/commands.hpp"

namespace tilewright::cli {
namespace {

class EnvCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const EnvironmentVariable& variable : kEnvironmentVariables) ::unsetenv(variable.name);
    ::unsetenv("TILEWRIGHT_DEVCE");
  }
  void TearDown() override { SetUp(); }

  /// Runs the command and returns its output, also if the command throws.
  std::string run(const std::string& line) {
    CLI::App app;
    const Command command = add_env_command(app);
    app.parse(line, false);
    testing::internal::CaptureStdout();
    try {
      EXPECT_EQ(command.run(), ExitCode::ok);
      refusal_.clear();
    } catch (const InvalidArgument& refused) {
      refusal_ = refused.what();
    }
    return testing::internal::GetCapturedStdout();
  }

  std::string refusal_;
};

TEST_F(EnvCommandTest, ListsEveryVariableWithItsDefault) {
  const nlohmann::json listed = nlohmann::json::parse(run("env --json"))["variables"];
  ASSERT_EQ(listed.size(), kEnvironmentVariables.size());
  for (std::size_t i = 0; i < listed.size(); ++i) {
    EXPECT_EQ(listed[i]["name"], kEnvironmentVariables[i].name);
    EXPECT_EQ(listed[i]["meaning"], kEnvironmentVariables[i].meaning);
    EXPECT_EQ(listed[i]["value"], kEnvironmentVariables[i].default_value);
    EXPECT_EQ(listed[i]["default"], kEnvironmentVariables[i].default_value);
    EXPECT_EQ(listed[i]["set"], false);
  }
  const std::string text = run("env");
  for (const EnvironmentVariable& variable : kEnvironmentVariables) {
    EXPECT_NE(text.find(variable.name), std::string::npos);
    EXPECT_NE(text.find(variable.meaning), std::string::npos);
  }
  EXPECT_EQ(text.find(" set "), std::string::npos) << text;
}

TEST_F(EnvCommandTest, ShowsWhichVariablesAreSet) {
  ::setenv("TILEWRIGHT_JOBS", "3", 1);
  ::setenv("TILEWRIGHT_CACHE_DIR", "/a\nb\xff", 1);
  const nlohmann::json said = nlohmann::json::parse(run("env --json"));
  for (const nlohmann::json& variable : said["variables"]) {
    const bool is_set = variable["name"] == "TILEWRIGHT_JOBS" || variable["name"] == "TILEWRIGHT_CACHE_DIR";
    EXPECT_EQ(variable["set"], is_set) << variable;
    if (variable["name"] == "TILEWRIGHT_JOBS") {
      EXPECT_EQ(variable["value"], "3");
      EXPECT_EQ(variable["default"], "0");
    }
  }
  const std::string text = run("env");
  EXPECT_TRUE(std::regex_search(text, std::regex("TILEWRIGHT_JOBS +set +3 "))) << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("TILEWRIGHT_TUNING +default +use "))) << text;
  EXPECT_EQ(text.find("/a\nb"), std::string::npos) << "each variable must have one line, whatever its value";
}

TEST_F(EnvCommandTest, WarnsOfUnknownNames) {
  EXPECT_EQ(run("env").find("TILEWRIGHT_DEVCE"), std::string::npos);
  ::setenv("TILEWRIGHT_DEVCE", "cuda", 1);
  EXPECT_NE(run("env").find("\nwarning: TILEWRIGHT_DEVCE is set, but Tilewright reads no variable of this name\n"),
            std::string::npos);
  const nlohmann::json unknown = nlohmann::json::parse(run("env --json"))["unknown"];
  EXPECT_NE(std::find(unknown.begin(), unknown.end(), "TILEWRIGHT_DEVCE"), unknown.end());
}

TEST_F(EnvCommandTest, RefusesInvalidValuesAfterTheList) {
  ::setenv("TILEWRIGHT_JOBS", "many", 1);
  EXPECT_TRUE(std::regex_search(run("env"), std::regex("TILEWRIGHT_JOBS +set +many ")));
  EXPECT_EQ(refusal_, "TILEWRIGHT_JOBS must be a number of at least 0, got 'many'");
}

}  // namespace
}  // namespace tilewright::cli
