// The table of environment variables: its rows, values, and detection of unknown names.
#include "tilewright/base/environment_variables.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "tilewright/base/text.hpp"

namespace tilewright {
namespace {

TEST(EnvironmentVariables, HaveUniqueNamesAndPrintableMeanings) {
  std::set<std::string_view> names;
  for (const EnvironmentVariable& variable : kEnvironmentVariables) {
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name << " has two rows";
    EXPECT_TRUE(is_identifier(variable.name) && std::string_view(variable.name).starts_with("TILEWRIGHT_"));
    EXPECT_EQ(printable(variable.meaning), variable.meaning) << "must be one printable line";
    EXPECT_STRNE(variable.meaning, "");
  }
}

TEST(EnvironmentVariables, AreUnsetIfEmpty) {
  constexpr const EnvironmentVariable& kJobs = environment_variable("TILEWRIGHT_JOBS");
  EXPECT_STREQ(kJobs.name, "TILEWRIGHT_JOBS");
  ::setenv(kJobs.name, "5", 1);
  EXPECT_EQ(kJobs.value(), "5");
  ::setenv(kJobs.name, "", 1);
  EXPECT_EQ(kJobs.value(), std::nullopt);
  ::unsetenv(kJobs.name);
  EXPECT_EQ(kJobs.value(), std::nullopt);
}

TEST(EnvironmentVariables, AreUnknownIfTheyHaveNoRow) {
  const std::vector<std::string> before = unknown_environment_variables();
  ::setenv("TILEWRIGHT_DEVCE", "cuda", 1);
  ::setenv("TILEWRIGHT_DEVICE", "cuda", 1);
  ::setenv("TILEWRIGHT_", "", 1);
  ::setenv("NOT_TILEWRIGHT_DEVCE", "cuda", 1);
  std::vector<std::string> found = unknown_environment_variables();
  for (const std::string& name : before) std::erase(found, name);
  EXPECT_EQ(found, (std::vector<std::string>{"TILEWRIGHT_", "TILEWRIGHT_DEVCE"}));
  for (const char* name : {"TILEWRIGHT_DEVCE", "TILEWRIGHT_DEVICE", "TILEWRIGHT_", "NOT_TILEWRIGHT_DEVCE"}) {
    ::unsetenv(name);
  }
  EXPECT_EQ(unknown_environment_variables(), before);
}

}  // namespace
}  // namespace tilewright
