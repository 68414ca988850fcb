// Checks global memory in the launches of a thread, for callers that launch through the engine.
#pragma once

namespace tilewright::emulator {

/// While it lives, launches of this thread on emulated devices are checked as with EmulatorOptions::check_global.
class GlobalMemoryChecks {
 public:
  GlobalMemoryChecks();
  ~GlobalMemoryChecks();
  GlobalMemoryChecks(const GlobalMemoryChecks&) = delete;
  GlobalMemoryChecks& operator=(const GlobalMemoryChecks&) = delete;

  static bool are_active();
};

}  // namespace tilewright::emulator
