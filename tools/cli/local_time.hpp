// Times as the command prints them.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>

namespace tilewright::cli {

/// Seconds since 1970 as "2026-01-31 17:05" of this machine's zone.
inline std::string local_time(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  localtime_r(&time, &parts);
  char text[32] = {};
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

}  // namespace tilewright::cli
