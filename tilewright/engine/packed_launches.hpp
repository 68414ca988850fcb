// The launches of recent calls, which are reused by calls with the same arrays and numbers.
#pragma once

#include <memory>
#include <utility>

#include "tilewright/engine/call.hpp"
#include "tilewright/engine/recent.hpp"
#include "tilewright/plan/launch.hpp"
#include "tilewright/registry/kernel.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::engine {

/// Packs the launches of one device and remembers the most recent ones: a program that calls a kernel again with the
/// same memory, as training steps and decoders do, neither packs parameters nor encodes tensor maps again. Thread-safe.
class PackedLaunches {
 public:
  /// `overlaps`: Options::overlap_launches.
  explicit PackedLaunches(std::shared_ptr<runtime::Device> device, bool overlaps = false)
      : device_(std::move(device)), overlaps_(overlaps) {}

  bool overlaps() const { return overlaps_; }

  /// The launch of the call, which waits for the last kernel only if launches overlap, with its tensor maps encoded
  /// except those of tensors in the workspace, which is not set.
  /// @pre supports(call.problem()) of the kernel, which has one step; D is not empty
  std::shared_ptr<const plan::Launch> get(const registry::KernelPtr& kernel, const Call& call);

 private:
  struct Packed {
    registry::KernelPtr kernel;
    Call call;
    plan::Launch launch;
  };
  std::shared_ptr<runtime::Device> device_;
  bool overlaps_;
  RecentTable<Packed> recent_;  // each is about 15 KB large
};

}  // namespace tilewright::engine
