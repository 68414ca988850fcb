// Address arithmetic, bounds, alignment and the shadow, for all lanes of an access at once.
#include "tilewright/emulator/access.hpp"

#include <algorithm>
#include <bit>

#include "tilewright/base/error.hpp"
#include "tilewright/emulator/cta.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"

namespace tilewright::emulator {
namespace {

std::string_view verb(AccessKind kind) {
  switch (kind) {
    case AccessKind::read:
    case AccessKind::synchronising_read:
      return "read";
    case AccessKind::unshadowed:
      return "access";
    default:
      return "write";
  }
}

/// Smallest and largest address of the lanes.
struct Extent {
  std::uint64_t low = ~std::uint64_t{0};
  std::uint64_t high = 0;
  std::uint64_t all_bits = 0;
};

Extent extent_of(const LanePointers& out, Mask lanes) {
  Extent extent;
  each_lane(lanes, [&](int l) {
    extent.low = std::min(extent.low, out.address[l]);
    extent.high = std::max(extent.high, out.address[l]);
    extent.all_bits |= out.address[l];
  });
  return extent;
}

void check_alignment(Warp& warp, const Instruction& in, Mask lanes, AccessSize size, AccessKind kind,
                     const LanePointers& out, const Extent& extent) {
  const std::uint32_t below = size.alignment - 1;
  if ((extent.all_bits & below) == 0) return;
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const std::uint64_t address = out.address[lane];
    if ((address & below) == 0) continue;
    warp.fail(FindingKind::misaligned_access, in, lane, address,
              fmt::format("{} of {} bytes at {:#x}, which is not a multiple of {}", verb(kind), size.bytes, address,
                          size.alignment));
  }
}

void resolve_global(Warp& warp, const Instruction& in, Mask lanes, AccessSize size, AccessKind kind,
                    LanePointers& out) {
  const std::uint32_t bytes = size.bytes;
  const Extent extent = extent_of(out, lanes);
  check_alignment(warp, in, lanes, size, kind, out, extent);
  const bool one_region = warp.region != nullptr && extent.high <= extent.high + bytes &&
                          warp.region->contains(extent.low, 0) && warp.region->contains(extent.high, bytes);
  each_lane(lanes, [&](int l) { out.at[l] = reinterpret_cast<std::byte*>(out.address[l]); });
  if (one_region) return;
  const RegionMap& regions = warp.cta().launch().regions;
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const std::uint64_t address = out.address[lane];
    if (warp.region != nullptr && warp.region->contains(address, bytes)) continue;
    const Region* const region = regions.find(address, bytes);
    if (region == nullptr) {
      warp.fail(FindingKind::out_of_bounds_global, in, lane, address,
                fmt::format("{} of {} bytes at {:#x} ({})", verb(kind), bytes, address, regions.describe(address)));
    }
    warp.region = region;
  }
}

SharedVerdict consult_shadow(Warp& warp, const Accessor& who, std::uint64_t address, std::uint32_t bytes,
                             AccessKind kind) {
  SharedMemory& shared = warp.cta().shared();
  VectorClock& now = warp.cta().clock(warp.index());
  switch (kind) {
    case AccessKind::read:
      return shared.read(now, who, address, bytes);
    case AccessKind::write:
      return shared.write(now, who, address, bytes);
    case AccessKind::synchronising_read:
      return shared.synchronising_access(now, who, address, bytes, false);
    case AccessKind::synchronising_write:
      return shared.synchronising_access(now, who, address, bytes, true);
    case AccessKind::unshadowed:
      break;
  }
  return SharedVerdict::ok;
}

/// " (tile + 12)", or how far past which variable it is.
std::string describe_shared_variable(const Program& program, std::uint64_t address) {
  const SharedVariable* below = nullptr;
  for (const SharedVariable& variable : program.shared_variables) {
    if (variable.size != 0 && variable.begin <= address) below = &variable;
  }
  if (address >= program.dynamic_shared_begin) {
    return fmt::format(" (dynamic shared memory + {})", address - program.dynamic_shared_begin);
  }
  if (below == nullptr) return {};
  const std::uint64_t offset = address - below->begin;
  if (offset < below->size) return fmt::format(" ({} + {})", below->name, offset);
  return fmt::format(" ({} bytes past the end of {}, which has {})", offset - below->size, below->name, below->size);
}

void resolve_shared(Warp& warp, const Instruction& in, Mask lanes, AccessSize size, AccessKind kind,
                    LanePointers& out) {
  const std::uint32_t bytes = size.bytes;
  const Extent extent = extent_of(out, lanes);
  check_alignment(warp, in, lanes, size, kind, out, extent);
  SharedMemory& shared = warp.cta().shared();
  const bool inside = shared.contains(extent.low, 0) && shared.contains(extent.high, bytes);
  out.shared |= lanes;
  const bool shadowed = shared.shadowed() && kind != AccessKind::unshadowed;
  for (Mask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const std::uint64_t address = out.address[lane];
    if (!inside && !shared.contains(address, bytes)) {
      warp.fail(FindingKind::out_of_bounds_shared, in, lane, address,
                fmt::format("{} of {} bytes at shared address {:#x}{}: the CTA's are {:#x} to {:#x}", verb(kind), bytes,
                            address, describe_shared_variable(warp.program(), address), kSharedBase, shared.end()));
    }
    out.at[lane] = shared.at(address);
    if (!shadowed) continue;
    const SharedVerdict verdict = consult_shadow(warp, warp.accessor(in, lane), address, bytes, kind);
    if (verdict != SharedVerdict::ok) report_shared(warp, in, lane, address, bytes, kind, verdict);
  }
}

void resolve_private(Warp& warp, const Instruction& in, Mask lanes, AccessSize size, AccessKind kind, LanePointers& out,
                     bool local) {
  const std::uint32_t bytes = size.bytes;
  check_alignment(warp, in, lanes, size, kind, out, extent_of(out, lanes));
  Cta& cta = warp.cta();
  const std::vector<std::byte>& parameters = cta.launch().parameters;
  const std::uint64_t end = local ? warp.program().local_bytes : parameters.size();
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const std::uint64_t address = out.address[lane];
    if (!Region{0, end}.contains(address, bytes)) {
      warp.fail(local ? FindingKind::out_of_bounds_local : FindingKind::out_of_bounds_param, in, lane, address,
                fmt::format("{} of {} bytes at offset {:#x} of {} bytes of {}", verb(kind), bytes, address, end,
                            local ? "local memory" : "parameters"));
    }
    // Parameters are never written: st.param to the kernel's own is refused when it is decoded.
    out.at[lane] = local ? cta.local(warp.index() * kWarpSize + lane) + address
                         : const_cast<std::byte*>(parameters.data()) + address;
  }
}

void resolve_in(Warp& warp, const Instruction& in, Mask lanes, Space space, AccessSize size, AccessKind kind,
                LanePointers& out) {
  switch (space) {
    case Space::global:
    case Space::constant:
      return resolve_global(warp, in, lanes, size, kind, out);
    case Space::shared:
      return resolve_shared(warp, in, lanes, size, kind, out);
    case Space::local:
      return resolve_private(warp, in, lanes, size, kind, out, true);
    case Space::param:
      return resolve_private(warp, in, lanes, size, kind, out, false);
    case Space::generic:
      break;
  }
  TILEWRIGHT_CHECK(false, "space {} is not resolved", static_cast<int>(space));
}

/// Each group of lanes in the space that its window shows.
void resolve_generic(Warp& warp, const Instruction& in, Mask lanes, AccessSize size, AccessKind kind,
                     LanePointers& out) {
  while (lanes != 0) {
    const std::uint64_t window = out.address[std::countr_zero(lanes)] & kWindowMask;
    Mask same = 0;
    each_lane(lanes, [&](int l) {
      if ((out.address[l] & kWindowMask) == window) same |= Mask{1} << l;
    });
    Space space = Space::global;
    if (window == kSharedWindow) space = Space::shared;
    if (window == kLocalWindow) space = Space::local;
    if (window == kParamWindow) space = Space::param;
    if (space != Space::global) each_lane(same, [&](int l) { out.address[l] &= ~kWindowMask; });
    resolve_in(warp, in, same, space, size, kind, out);
    lanes &= ~same;
  }
}

}  // namespace

void resolve(Warp& warp, const Instruction& in, Mask lanes, Space space, std::size_t which, AccessSize size,
             AccessKind kind, LanePointers& out) {
  const AddressOperand& operand = in.address[which];
  const auto offset = static_cast<std::uint64_t>(operand.offset);
  out.shared = 0;
  if (operand.register_bytes == 4) {
    const auto* const base = warp.reg<std::uint32_t>(in.op[operand.operand]);
    each_lane(lanes, [&](int l) { out.address[l] = static_cast<std::uint32_t>(base[l] + offset); });
  } else {
    const auto* const base = warp.reg<std::uint64_t>(in.op[operand.operand]);
    each_lane(lanes, [&](int l) { out.address[l] = base[l] + offset; });
  }
  if (space == Space::generic) return resolve_generic(warp, in, lanes, size, kind, out);
  resolve_in(warp, in, lanes, space, size, kind, out);
}

void report_shared(Warp& warp, const Instruction& in, int lane, std::uint64_t address, std::uint32_t bytes,
                   AccessKind kind, SharedVerdict verdict) {
  Cta& cta = warp.cta();
  const Accessor& other = cta.shared().other();
  const std::string what = fmt::format("{} of {} bytes at shared address {:#x}{}", verb(kind), bytes, address,
                                       describe_shared_variable(warp.program(), address));
  const auto who = [&] {
    return fmt::format(
        "thread {} at {}",
        to_string(cta.thread_index(static_cast<int>(other.warp) * kWarpSize + static_cast<int>(other.lane))),
        cta.describe_place(other.code));
  };
  switch (verdict) {
    case SharedVerdict::ok:
      return;
    case SharedVerdict::uninitialised:
      return cta.suspect(FindingKind::uninitialised_shared_read, warp.code_index(in), warp.index() * kWarpSize + lane,
                         address, what + ", which no thread has written,");
    case SharedVerdict::race:
      warp.fail(FindingKind::shared_race, in, lane, address,
                fmt::format("{} with no barrier (missing __syncthreads?) after the access by {},", what, who()));
    case SharedVerdict::outside:
      warp.fail(FindingKind::out_of_bounds_shared, in, lane, address, what);
    case SharedVerdict::in_flight:
      warp.fail(FindingKind::in_flight_read, in, lane, address,
                fmt::format("{} while the cp.async to it by {} is in flight,", what, who()));
  }
}

}  // namespace tilewright::emulator
