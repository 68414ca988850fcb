#include "tilewright/base/environment_variables.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace tilewright {

std::optional<std::string> EnvironmentVariable::value() const {
  const char* const text = ::secure_getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return text;
}

std::vector<std::string> unknown_environment_variables() {
  std::vector<std::string> unknown;
  for (char* const* entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view assignment(*entry);
    const std::string_view name = assignment.substr(0, assignment.find('='));
    const auto has_name = [&](const EnvironmentVariable& row) { return row.name == name; };
    if (name.starts_with("TILEWRIGHT_") && std::ranges::none_of(kEnvironmentVariables, has_name)) {
      unknown.emplace_back(name);
    }
  }
  std::ranges::sort(unknown);
  return unknown;
}

}  // namespace tilewright
