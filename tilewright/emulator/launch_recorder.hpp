// Profiles the launches of a thread on emulated devices, for callers that launch through the engine.
#pragma once

#include <map>
#include <string>

#include "tilewright/emulator/profile.hpp"

namespace tilewright::emulator {

/// While it lives, the first launch of each kernel on this thread is profiled. A profiled launch uses one host thread.
class LaunchRecorder {
 public:
  LaunchRecorder();
  ~LaunchRecorder();
  LaunchRecorder(const LaunchRecorder&) = delete;
  LaunchRecorder& operator=(const LaunchRecorder&) = delete;

  /// Returns the recorder of the innermost scope of this thread. If it is null, launches are not profiled.
  static LaunchRecorder* current();

  /// Null if the kernel of that symbol was not launched, or did not run to its end.
  const LaunchProfile* find(const std::string& symbol) const;
  void record(const std::string& symbol, const LaunchProfile& profile);

 private:
  LaunchRecorder* outer_;
  std::map<std::string, LaunchProfile> launches_;
};

}  // namespace tilewright::emulator
