#include "tilewright/emulator/launch_recorder.hpp"

#include <utility>

namespace tilewright::emulator {
namespace {

thread_local LaunchRecorder* innermost = nullptr;

}  // namespace

LaunchRecorder::LaunchRecorder() : outer_(std::exchange(innermost, this)) {}
LaunchRecorder::~LaunchRecorder() { innermost = outer_; }

LaunchRecorder* LaunchRecorder::current() { return innermost; }

const LaunchProfile* LaunchRecorder::find(const std::string& symbol) const {
  const auto found = launches_.find(symbol);
  return found == launches_.end() ? nullptr : &found->second;
}

void LaunchRecorder::record(const std::string& symbol, const LaunchProfile& profile) {
  launches_.try_emplace(symbol, profile);
}

}  // namespace tilewright::emulator
