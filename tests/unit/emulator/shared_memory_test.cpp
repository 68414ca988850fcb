// The fast paths of the shadow find what the accesses of single lanes find, for random accesses of a few warps.
#include "tilewright/emulator/shared_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

namespace tilewright::emulator {
namespace {

constexpr std::uint32_t kBytes = 1536;
constexpr std::uint32_t kWarps = 4;

struct LaneAccess {
  std::uint64_t addresses[kWarpSize];
  Mask lanes = kAllLanes;
  std::uint32_t bytes = 4;
  bool writes = false;
};

class RandomAccesses {
 public:
  RandomAccesses(std::uint32_t seed, bool check_warps)
      : random_(seed), fast_(true, true, check_warps), slow_(true, true, check_warps) {
    for (SharedMemory* memory : {&fast_, &slow_}) {
      memory->reset(kBytes);
      memory->mark_red_zone(kSharedBase + kBytes - 36, 12);
    }
    for (std::uint32_t w = 0; w < kWarps; ++w) clocks_[w].ordered[agent(w)] = 1;
  }

  void step() {
    ++code_;
    // Barriers are frequent, so that most accesses are in order, as in programs.
    switch (below(20)) {
      case 0:
        return strong();
      case 1:
        return copy();
      case 2:
        return mark();
      case 3:
        return advance(below(kWarps));
      case 4:
        return chunks();
      case 5:
        return below(16) == 0 ? restart() : access();
      case 6:
      case 7:
      case 8:
      case 9:
        return synchronise();
      default:
        return access();
    }
  }
  int verdicts(bool ok) const { return ok ? plain_ : found_; }

 private:
  std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(random_() % end); }
  static Agent agent(std::uint32_t warp) { return 2 * (warp + 5); }
  Accessor accessor(std::uint32_t warp, std::uint32_t lane) const { return {agent(warp), lane, code_, 0}; }
  void advance(std::uint32_t warp) { ++clocks_[warp].ordered[agent(warp)]; }

  void synchronise() {
    Clocks all;
    const std::uint32_t only = below(6) == 0 ? below(1U << kWarps) : (1U << kWarps) - 1;
    for (std::uint32_t w = 0; w < kWarps; ++w) {
      if ((only >> w & 1) != 0) all.join(clocks_[w]);
    }
    for (std::uint32_t w = 0; w < kWarps; ++w) {
      if ((only >> w & 1) == 0) continue;
      clocks_[w].join(all);
      advance(w);
    }
  }

  void strong() {
    const std::uint32_t warp = below(kWarps);
    const std::uint64_t address = kSharedBase + 4 * below(kBytes / 4 - 16);
    const bool writes = below(2) != 0;
    const ReleasedClocks none;
    const StrongAccess how{{}, writes, false, &none, false, StrongAccess::kNobody};
    Clocks again = clocks_[warp];
    const SharedVerdict first = fast_.strong_access(clocks_[warp], how, accessor(warp, 0), address, 4);
    ASSERT_EQ(first, slow_.strong_access(again, how, accessor(warp, 0), address, 4)) << "strong access " << code_;
  }

  void copy() {
    const std::uint32_t warp = below(kWarps);
    const std::uint64_t address = kSharedBase + 16 * below(kBytes / 16 - 4);
    const VectorClock& now = clocks_[warp].ordered;
    ASSERT_EQ(fast_.begin_copy(now, accessor(warp, 3), address, 16),
              slow_.begin_copy(now, accessor(warp, 3), address, 16));
    if (below(4) == 0) check_read(warp, address + 4);
    for (SharedMemory* memory : {&fast_, &slow_}) memory->complete_copy(now, accessor(warp, 3), address, 16);
  }

  void mark() {
    const std::uint64_t address = kSharedBase + below(kBytes - 300);
    const std::uint32_t bytes = 1 + below(256);
    const std::uint32_t what = below(3);
    for (SharedMemory* memory : {&fast_, &slow_}) {
      if (what == 0) memory->mark_undefined(address, bytes);
      if (what == 1) memory->mark_defined(address, bytes);
    }
    ASSERT_EQ(fast_.is_undefined(address, bytes), slow_.is_undefined(address, bytes)) << "after " << code_;
  }

  /// Reads of a few chunks through the async proxy, also of several at once.
  void chunks() {
    const std::uint32_t warp = below(kWarps);
    const Accessor reader{async_of(agent(warp)), 0, code_, 1};
    SharedMemory::ChunkReads reads(fast_, clocks_[warp], reader);
    std::uint32_t addresses[SharedMemory::ChunkReads::kAlike];
    const std::uint32_t base = kSharedBase + 128 * below((kBytes - 256) / 128);
    const std::uint32_t stride = 16U << below(2);
    for (std::uint32_t i = 0; i < std::size(addresses); ++i) addresses[i] = base + (i * stride) % 256;
    if (below(2) == 0) std::ranges::shuffle(addresses, random_);
    const auto expect = [&](std::uint32_t address, SharedVerdict found) {
      const SharedVerdict expected = slow_.async_read(clocks_[warp], reader, address, 16);
      const auto begin = reported_.begin() + static_cast<std::ptrdiff_t>(address - kSharedBase);
      if (std::find(begin, begin + 16, true) == begin + 16) {
        ASSERT_EQ(found, expected) << "chunk at " << address << ", access number " << code_;
      }
      if (expected != SharedVerdict::ok) std::fill(begin, begin + 16, true);
    };
    expect(addresses[0], reads.read(addresses[0]));
    if (reads.read_alike(addresses)) {
      for (const std::uint32_t address : addresses) expect(address, SharedVerdict::ok);
    } else {
      for (const std::uint32_t address : addresses) expect(address, reads.read(address));
    }
  }

  void restart() {
    for (std::uint32_t w = 0; w < kWarps; ++w) {
      clocks_[w].clear();
      clocks_[w].ordered[agent(w)] = 1;
    }
    fast_.restart_clocks();
    slow_.restart_clocks();
  }

  void check_read(std::uint32_t warp, std::uint64_t address) {
    LaneAccess one;
    one.lanes = 1;
    one.addresses[0] = address;
    check(warp, one);
  }

  void access() {
    LaneAccess of;
    of.writes = below(2) != 0;
    of.bytes = below(2) == 0 ? 4 : 1U << below(5);
    const std::uint32_t pattern = below(10);
    const std::uint32_t span = kWarpSize * of.bytes;
    const std::uint32_t aligned = below(4) == 0 ? of.bytes : std::max(of.bytes, 32U);
    // Often near the last access, and by the same warp.
    if (below(4) == 0) base_ = below((kBytes - span * 2) / aligned + 1) * aligned;
    if (below(2) == 0) warp_ = below(kWarps);
    base_ = std::min(base_, kBytes - span * 2) / of.bytes * of.bytes;
    const std::uint64_t base = kSharedBase + base_;
    std::vector<std::uint32_t> order(kWarpSize);
    for (std::uint32_t l = 0; l < kWarpSize; ++l) {
      order[l] = pattern == 1   ? 2 * l                 // every second
                 : pattern == 2 ? l / 8 * 16 + l % 8    // rows of 8
                 : pattern == 3 ? l / 16 * 32 + l % 16  // rows of 16
                                : l;
      if (!of.writes && pattern == 4) order[l] = l / 16;  // two for all
      if (!of.writes && pattern == 5) order[l] = l % 16;  // one row, twice
    }
    if (pattern == 6) std::ranges::shuffle(order, random_);
    if (pattern == 7) {  // rows of 8, from the last to the first
      for (std::uint32_t l = 0; l < kWarpSize; ++l) order[l] = 24 - l / 8 * 8 + l % 8;
    }
    for (std::uint32_t l = 0; l < kWarpSize; ++l) of.addresses[l] = base + std::uint64_t{order[l]} * of.bytes;
    if (below(8) == 0) of.lanes = static_cast<Mask>(random_()) | 1;
    check(warp_, of);
  }

  void check(std::uint32_t warp, const LaneAccess& of) {
    const VectorClock& now = clocks_[warp].ordered;
    Mask others = of.lanes;
    bool consecutive = of.lanes == kAllLanes;
    for (std::uint32_t l = 1; l < kWarpSize && consecutive; ++l)
      consecutive = of.addresses[l] == of.addresses[0] + std::uint64_t{l} * of.bytes;
    if (consecutive && fast_.access_consecutive(now, accessor(warp, 0), of.addresses[0], of.bytes, of.writes)) {
      others = 0;
    } else {
      others = fast_.access_lanes(now, accessor(warp, 0), of.addresses, 0, of.lanes, of.bytes, of.writes);
    }
    for (std::uint32_t l = 0; l < kWarpSize; ++l) {
      if ((of.lanes >> l & 1) == 0) continue;
      const auto judge = [&](SharedMemory& memory) {
        return of.writes ? memory.write(now, accessor(warp, l), of.addresses[l], of.bytes)
                         : memory.read(now, accessor(warp, l), of.addresses[l], of.bytes);
      };
      const SharedVerdict expected = judge(slow_);
      ++(expected == SharedVerdict::ok ? plain_ : found_);
      const SharedVerdict found = (others >> l & 1) != 0 ? judge(fast_) : SharedVerdict::ok;
      // Readers of which something was found need not be recorded until the next write.
      const auto begin = reported_.begin() + static_cast<std::ptrdiff_t>(of.addresses[l] - kSharedBase);
      const auto end = begin + static_cast<std::ptrdiff_t>(of.bytes);
      const bool was_reported = std::find(begin, end, true) != end;
      if (of.writes || (!was_reported && expected != SharedVerdict::ok)) std::fill(begin, end, !of.writes);
      if (was_reported) continue;
      ASSERT_EQ(found, expected) << (of.writes ? "write" : "read") << " number " << code_ << " of " << of.bytes
                                 << " bytes by lane " << l << " of warp " << warp << " at " << of.addresses[l];
    }
  }

  std::mt19937 random_;
  SharedMemory fast_, slow_;
  std::vector<bool> reported_ = std::vector<bool>(kBytes);
  std::array<Clocks, kWarps> clocks_;
  std::uint32_t code_ = 0, base_ = 0, warp_ = 0;
  int plain_ = 0, found_ = 0;
};

TEST(SharedMemory, FastPathsFindWhatSingleLanesFind) {
  int plain = 0, found = 0;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    RandomAccesses accesses(seed, seed % 3 != 0);
    for (int i = 0; i < 800; ++i) {
      accesses.step();
      if (HasFatalFailure()) FAIL() << "seed " << seed << ", step " << i;
    }
    plain += accesses.verdicts(true);
    found += accesses.verdicts(false);
  }
  // Both kinds must occur often for the test to say something.
  EXPECT_GT(plain, 150000);
  EXPECT_GT(found, 20000);
}

}  // namespace
}  // namespace tilewright::emulator
