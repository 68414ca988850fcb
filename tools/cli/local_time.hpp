// The format of times in the command's output.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>

namespace tilewright::cli {

/// Formats seconds since 1970 in the local time zone: "2026-01-31 17:05".
inline std::string local_time(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  localtime_r(&time, &parts);
  char text[32] = {};
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

}  // namespace tilewright::cli
