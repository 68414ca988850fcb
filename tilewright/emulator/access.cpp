// Address arithmetic, bounds, alignment and the shadow, for all lanes of an access at once.
#include "tilewright/emulator/access.hpp"

#include <algorithm>
#include <bit>

#include "tilewright/base/error.hpp"
#include "tilewright/emulator/cluster.hpp"
#include "tilewright/emulator/global_shadow.hpp"
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
  const Mask all = lanes;
  if (one_region) lanes = 0;
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
  GlobalShadow* const shadow = warp.cta().launch().global_shadow;
  if (shadow == nullptr || kind == AccessKind::unshadowed) return;
  each_lane(all, [&](int l) { shadow->access(warp, in, l, out.address[l], bytes, kind); });
}

SharedVerdict consult_shadow(Warp& warp, SharedMemory& shared, const Accessor& who, std::uint64_t address,
                             std::uint32_t bytes, AccessKind kind) {
  switch (kind) {
    case AccessKind::read:
      return shared.read(warp.past.happened, who, address, bytes);
    case AccessKind::write:
      return shared.write(warp.past.happened, who, address, bytes);
    case AccessKind::synchronising_read:
      return shared.synchronising_access(warp.past, who, address, bytes, false);
    case AccessKind::synchronising_write:
      return shared.synchronising_access(warp.past, who, address, bytes, true);
    case AccessKind::unshadowed:
      break;
  }
  return SharedVerdict::ok;
}

void resolve_shared(Warp& warp, const Instruction& in, Mask lanes, AccessSize size, AccessKind kind,
                    LanePointers& out) {
  const std::uint32_t bytes = size.bytes;
  const Extent extent = extent_of(out, lanes);
  check_alignment(warp, in, lanes, size, kind, out, extent);
  SharedMemory& shared = warp.cta().shared();
  const bool inside = shared.contains(extent.low, 0) && shared.contains(extent.high, bytes);
  const bool shadowed = shared.shadowed() && kind != AccessKind::unshadowed;
  if (inside && !shadowed) {
    out.shared |= lanes;
    each_lane(lanes, [&](int l) { out.at[l] = shared.at(out.address[l]); });
    return;
  }
  for (Mask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const SharedPlace place = locate_shared(warp, in, lane, out.address[lane], bytes, verb(kind));
    if (place.cta == &warp.cta()) out.shared |= Mask{1} << lane;
    out.at[lane] = place.cta->shared().at(place.address);
    if (!shadowed) continue;
    const SharedVerdict verdict =
        consult_shadow(warp, place.cta->shared(), warp.accessor(in, lane), place.address, bytes, kind);
    if (verdict != SharedVerdict::ok) {
      report_shared(warp, in, lane, place, bytes, verb(kind), verdict);
    }
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

void compute_addresses(Warp& warp, const AddressOperand& operand, const Slot* operands, Mask lanes, LanePointers& out) {
  const auto offset = static_cast<std::uint64_t>(operand.offset);
  if (operand.register_bytes == 4) {
    const auto* const base = warp.reg<std::uint32_t>(operands[operand.operand]);
    each_lane(lanes, [&](int l) { out.address[l] = static_cast<std::uint32_t>(base[l] + offset); });
  } else {
    const auto* const base = warp.reg<std::uint64_t>(operands[operand.operand]);
    each_lane(lanes, [&](int l) { out.address[l] = base[l] + offset; });
  }
}

}  // namespace

SharedPlace resolve_shared_place(Warp& warp, const Instruction& in, int lane, std::size_t which, AccessSize size,
                                 std::string_view verb) {
  LanePointers out;
  const Mask only = Mask{1} << lane;
  compute_addresses(warp, in.address[which], in.op, only, out);
  std::uint64_t& address = out.address[lane];
  if ((address & kWindowMask) == kSharedWindow) address &= ~kWindowMask;
  check_alignment(warp, in, only, size, AccessKind::unshadowed, out, extent_of(out, only));
  return locate_shared(warp, in, lane, address, size.bytes, verb);
}

void resolve(Warp& warp, const Instruction& in, Mask lanes, Space space, std::size_t which, AccessSize size,
             AccessKind kind, LanePointers& out) {
  out.shared = 0;
  compute_addresses(warp, in.address[which], in.op, lanes, out);
  if (space == Space::generic) return resolve_generic(warp, in, lanes, size, kind, out);
  resolve_in(warp, in, lanes, space, size, kind, out);
}

SharedPlace locate_shared(Warp& warp, const Instruction& in, int lane, std::uint64_t address, std::uint64_t bytes,
                          std::string_view verb) {
  Cta& own = warp.cta();
  const std::uint64_t window = address >> kClusterRankShift;
  const std::uint64_t offset = address & kSharedOffsetMask;
  const auto size = static_cast<std::uint64_t>(own.cluster().size());
  if (window > size || (window != 0 && size == 1)) {
    warp.fail(FindingKind::out_of_bounds_shared, in, lane, address,
              fmt::format("{} of {} bytes at shared address {:#x} of CTA {} of a cluster of {}", verb, bytes, offset,
                          window - 1, size));
  }
  Cta& cta = window == 0 ? own : own.cluster().cta(static_cast<int>(window - 1));
  if (!cta.shared().contains(offset, bytes)) {
    warp.fail(FindingKind::out_of_bounds_shared, in, lane, address,
              fmt::format("{} of {} bytes at shared address {:#x}{}: the CTA's are {:#x} to {:#x}", verb, bytes, offset,
                          cta.describe_shared(offset), kSharedBase, cta.shared().end()));
  }
  if (&cta != &own) {
    if (cta.finished()) {
      warp.fail(FindingKind::exited_cta_access, in, lane, address,
                fmt::format("{} of {} bytes at shared address {:#x}{} of CTA {}, which has exited", verb, bytes, offset,
                            cta.describe_shared(offset), to_string(cta.index())));
    }
    cta.note_remote_access(warp.past.happened, warp.accessor(in, lane));
  }
  return {&cta, static_cast<std::uint32_t>(offset)};
}

void report_shared(Warp& warp, const Instruction& in, int lane, const SharedPlace& place, std::uint32_t bytes,
                   std::string_view verb, SharedVerdict verdict) {
  Cta& cta = warp.cta();
  const SharedMemory& shared = place.cta->shared();
  const std::string what = fmt::format("{} of {} bytes at shared address {:#x}{}", verb, bytes, place.address,
                                       place.cta->describe_shared(place.address));
  const Accessor& other = shared.other();
  const auto who = [&] { return cta.cluster().describe(other); };
  const auto fail = [&](FindingKind kind, std::string detail) {
    warp.fail(kind, in, lane, place.address, std::move(detail));
  };
  switch (verdict) {
    case SharedVerdict::ok:
      return;
    case SharedVerdict::uninitialised:
      return cta.suspect(FindingKind::uninitialised_shared_read, warp.code_index(in), warp.index() * kWarpSize + lane,
                         place.address, what + ", which no thread has written,");
    case SharedVerdict::unfenced:
      return fail(FindingKind::unfenced_async_read,
                  fmt::format("{} through the asynchronous proxy, with no fence.proxy.async after the write by {},",
                              what, who()));
    case SharedVerdict::race:
      if (is_async(other.agent) && shared.other_reads()) {
        return fail(FindingKind::in_flight_write,
                    fmt::format("{} that {} may still be reading: no wait for it came before,", what, who()));
      }
      if (cta.cluster().record_of(other.agent).kind == AgentRecord::Kind::mbarrier) {
        return fail(FindingKind::in_flight_read,
                    fmt::format("{} that {} writes: no wait for that mbarrier came before,", what, who()));
      }
      return fail(FindingKind::shared_race,
                  fmt::format("{} with no barrier (missing __syncthreads?) after the access by {},", what, who()));
    case SharedVerdict::outside:
      return fail(FindingKind::out_of_bounds_shared, what);
    case SharedVerdict::in_flight:
      return fail(FindingKind::in_flight_read,
                  fmt::format("{} while the cp.async to it by {} is in flight,", what, who()));
  }
}

}  // namespace tilewright::emulator
