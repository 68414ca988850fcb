// Computes addresses, checks bounds and alignment, and consults the shadow, for all lanes of an access at once.
#include "tilewright/emulator/access.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tilewright/base/error.hpp"
#include "tilewright/emulator/cluster.hpp"
#include "tilewright/emulator/global_shadow.hpp"
#include "tilewright/emulator/instructions/any_bit.hpp"
#include "tilewright/emulator/instructions/hardware_fma.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"

namespace tilewright::emulator {
namespace {

std::string_view verb(AccessKind kind) {
  switch (kind) {
    case AccessKind::read:
    case AccessKind::strong_read:
      return "read";
    case AccessKind::unshadowed:
      return "access";
    case AccessKind::strong_update:
      return "atomic update";
    default:
      return "write";
  }
}

/// Smallest and largest address over the lanes.
struct AddressRange {
  std::uint64_t low = ~std::uint64_t{0};
  std::uint64_t high = 0;
  std::uint64_t all_bits = 0;  // bitwise or of all addresses
};

[[gnu::always_inline]] inline void widen(AddressRange& range, const std::uint64_t* addresses) {
  AddressRange all;
  for (int l = 0; l < kWarpSize; ++l) {
    all.low = std::min(all.low, addresses[l]);
    all.high = std::max(all.high, addresses[l]);
    all.all_bits |= addresses[l];
  }
  range = all;
}
// Only AVX-512 has minima of 64-bit numbers.
TILEWRIGHT_TARGET_AVX512 void widen_with_avx512(AddressRange& range, const std::uint64_t* addresses) {
  widen(range, addresses);
}

AddressRange address_range(const LanePointers& out, Mask lanes) {
  AddressRange range;
  if (lanes == kAllLanes) {
    has_avx512() ? widen_with_avx512(range, out.address) : widen(range, out.address);
    return range;
  }
  each_lane(lanes, [&](int l) {
    range.low = std::min(range.low, out.address[l]);
    range.high = std::max(range.high, out.address[l]);
    range.all_bits |= out.address[l];
  });
  return range;
}

/// The bytes that a lane accesses instead of those that it must not, when the launch continues after the finding. Reads
/// give ones, as uninitialised memory does.
std::byte* rejected_access(Warp& warp, const Instruction& in, AccessKind kind) {
  alignas(128) thread_local std::byte bytes[256];
  std::memset(bytes, 0xff, sizeof(bytes));
  if (kind != AccessKind::write && kind != AccessKind::strong_write) warp.cta().note_rejected_read(warp.code_index(in));
  return bytes;
}

/// Rejects the lanes of the mask whose address is not aligned. Returns the other lanes.
Mask check_alignment(Warp& warp, const Instruction& in, Mask lanes, AccessSize size, AccessKind kind, LanePointers& out,
                     const AddressRange& range) {
  const std::uint32_t low_bits = size.alignment - 1;
  if ((range.all_bits & low_bits) == 0) return lanes;
  for (Mask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const std::uint64_t address = out.address[lane];
    if ((address & low_bits) == 0) continue;
    warp.report(Severity::error, FindingKind::misaligned_access, in, lane, address, [&] {
      return fmt::format("{} of {} bytes at address {:#x}, which must be a multiple of {}", verb(kind), size.bytes,
                         address, size.alignment);
    });
    out.at[lane] = rejected_access(warp, in, kind);
    lanes &= ~(Mask{1} << lane);
  }
  return lanes;
}

void resolve_global(Warp& warp, const Instruction& in, Mask lanes, AccessSize size, AccessKind kind,
                    LanePointers& out) {
  const std::uint32_t bytes = size.bytes;
  const AddressRange range = address_range(out, lanes);
  lanes = check_alignment(warp, in, lanes, size, kind, out, range);
  const RegionMap& regions = warp.cta().launch().regions;
  const auto is_in = [&](const Region* region) {
    return region != nullptr && range.high <= range.high + bytes && region->contains(range.low, 0) &&
           region->contains(range.high, bytes);
  };
  bool one_region = is_in(warp.region);
  if (!one_region) {
    const Region* const region = regions.find(range.low, bytes);
    one_region = is_in(region);
    if (one_region) warp.region = region;
  }
  each_lane(lanes, [&](int l) { out.at[l] = reinterpret_cast<std::byte*>(out.address[l]); });
  Mask inside = lanes;
  if (one_region) lanes = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const std::uint64_t address = out.address[lane];
    if (warp.region != nullptr && warp.region->contains(address, bytes)) continue;
    const Region* const region = regions.find(address, bytes);
    if (region == nullptr) {
      warp.report(Severity::error, FindingKind::out_of_bounds_global, in, lane, address, [&] {
        return fmt::format("{} of {} bytes at global address {:#x} ({})", verb(kind), bytes, address,
                           regions.describe(address));
      });
      out.at[lane] = rejected_access(warp, in, kind);
      inside &= ~(Mask{1} << lane);
      continue;
    }
    warp.region = region;
  }
  GlobalShadow* const shadow = warp.cta().launch().global_shadow;
  if (shadow == nullptr || kind == AccessKind::unshadowed) return;
  if (kind == AccessKind::read || kind == AccessKind::write) {
    inside = shadow->access_lanes(warp, in, inside, out.address, bytes, kind == AccessKind::write);
  }
  for (; inside != 0; inside &= inside - 1) {
    const int lane = std::countr_zero(inside);
    const std::byte* const value =
        out.values == nullptr ? nullptr : out.values + static_cast<std::size_t>(lane) * bytes;
    if (shadow->access(warp, in, lane, out.address[lane], bytes, kind, value, out)) continue;
    if (out.follows_undefined) {
      out.undefined |= Mask{1} << lane;
    } else {
      warp.report(Severity::error, FindingKind::uninitialised_global_read, in, lane, out.address[lane], [&] {
        return fmt::format("{} of {} bytes at global address {:#x}, which no one has written", verb(kind), bytes,
                           out.address[lane]);
      });
    }
  }
}

SharedVerdict consult_shadow(Warp& warp, SharedMemory& shared, const Accessor& accessor, std::uint64_t address,
                             std::uint32_t bytes, AccessKind kind, const LanePointers& out) {
  const StrongAccess strong{{out.scope, static_cast<std::uint32_t>(warp.cta().rank()), 0},
                            kind != AccessKind::strong_read,
                            out.releases,
                            &warp.released,
                            false,
                            warp.agent(),
                            warp.cta().cluster().size() == 1};
  const bool reads_strongly = kind == AccessKind::strong_read || kind == AccessKind::strong_update;
  const SharedVerdict undefined =
      reads_strongly && warp.cta().launch().options.check_warps && shared.is_undefined(address, bytes)
          ? SharedVerdict::uninitialised
          : SharedVerdict::ok;
  switch (kind) {
    case AccessKind::read:
      return shared.read(warp.clocks.ordered, accessor, address, bytes);
    case AccessKind::write:
      return shared.write(warp.clocks.ordered, accessor, address, bytes);
    case AccessKind::strong_read:
    case AccessKind::strong_write:
    case AccessKind::strong_update:
      return std::max(shared.strong_access(warp.clocks, strong, accessor, address, bytes), undefined);
    case AccessKind::unshadowed:
      break;
  }
  return SharedVerdict::ok;
}

/// Replaces the rank in bits 24 and up of shared addresses by its exclusive or with the CTA's own rank, so that an
/// address of the CTA's own shared memory is an offset. An instruction of .shared::cta takes an address without a rank
/// for one of its own CTA, and must have no other rank.
void make_relative(Warp& warp, const Instruction& in, Mask lanes, bool is_cluster_address, std::uint64_t* addresses) {
  const Cta& cta = warp.cta();
  const auto own = static_cast<std::uint64_t>(cta.rank());
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    std::uint64_t& address = addresses[lane];
    const std::uint64_t rank = address >> kClusterRankShift;
    if (rank == own) {
      address &= kSharedOffsetMask;
      continue;
    }
    if (!is_cluster_address && rank == 0) continue;
    if (!is_cluster_address) {
      warp.report(Severity::error, FindingKind::out_of_bounds_shared, in, lane, address, [&] {
        return fmt::format(
            "access at shared address {:#x} of the CTA of rank {} in the cluster, by an instruction of .shared::cta in "
            "the CTA of rank {}; it must be of .shared::cluster or have a generic address",
            address & kSharedOffsetMask, rank, own);
      });
    }
    address ^= own << kClusterRankShift;
  }
}

/// As locate_shared(); but if the launch continues after a finding, the result has no CTA. The address is relative.
SharedLocation find_shared(Warp& warp, const Instruction& in, int lane, std::uint64_t address, std::uint64_t bytes,
                           std::string_view verb) {
  Cta& own = warp.cta();
  const std::uint64_t rank = (address >> kClusterRankShift) ^ static_cast<std::uint64_t>(own.rank());
  const std::uint64_t offset = address & kSharedOffsetMask;
  const auto size = static_cast<std::uint64_t>(own.cluster().size());
  if (rank >= size) {
    warp.report(Severity::error, FindingKind::out_of_bounds_shared, in, lane, address, [&] {
      return fmt::format("{} of {} bytes at shared address {:#x} of the CTA of rank {}, in a cluster of {}", verb,
                         bytes, offset, rank, size);
    });
    return {};
  }
  Cta& cta = own.cluster().cta(static_cast<int>(rank));
  if (!cta.shared().contains(offset, bytes)) {
    warp.report(Severity::error, FindingKind::out_of_bounds_shared, in, lane, address, [&] {
      return fmt::format("{} of {} bytes at shared address {:#x}{}: the CTA's shared memory is [{:#x}, {:#x})", verb,
                         bytes, offset, cta.describe_shared(offset), kSharedBase, cta.shared().end());
    });
    return {};
  }
  if (&cta != &own) {
    if (cta.finished()) {
      warp.report(Severity::error, FindingKind::exited_cta_access, in, lane, address, [&] {
        return fmt::format("{} of {} bytes at shared address {:#x}{} of CTA {}, which has exited", verb, bytes, offset,
                           cta.describe_shared(offset), to_string(cta.index()));
      });
      return {};
    }
    cta.note_remote_access(warp.clocks.ordered, warp.accessor(in, lane));
  }
  return {&cta, static_cast<std::uint32_t>(offset)};
}

void resolve_shared(Warp& warp, const Instruction& in, Mask lanes, AccessSize size, AccessKind kind,
                    LanePointers& out) {
  const std::uint32_t bytes = size.bytes;
  const AddressRange range = address_range(out, lanes);
  lanes = check_alignment(warp, in, lanes, size, kind, out, range);
  SharedMemory& shared = warp.cta().shared();
  const bool inside = shared.contains(range.low, 0) && shared.contains(range.high, bytes);
  const bool shadowed = shared.shadowed() && kind != AccessKind::unshadowed;
  if (inside && !shadowed) {
    out.shared |= lanes;
    each_lane(lanes, [&](int l) { out.at[l] = shared.at(out.address[l]); });
    return;
  }
  if (inside && (kind == AccessKind::read || kind == AccessKind::write)) {
    out.shared |= lanes;
    each_lane(lanes, [&](int l) { out.at[l] = shared.at(out.address[l]); });
    lanes = shared.access_lanes(warp.clocks.ordered, warp.accessor(in, 0), out.address, 0, lanes, bytes,
                                kind == AccessKind::write);
  }
  for (Mask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const SharedLocation location = inside ? SharedLocation{&warp.cta(), static_cast<std::uint32_t>(out.address[lane])}
                                           : find_shared(warp, in, lane, out.address[lane], bytes, verb(kind));
    if (location.cta == nullptr) {
      out.at[lane] = rejected_access(warp, in, kind);
      continue;
    }
    if (location.cta == &warp.cta()) {
      out.shared |= Mask{1} << lane;
    } else if (warp.cta().launch().options.check_races && !warp.cta().has_started(*location.cta, warp.clocks.ordered)) {
      warp.report(Severity::error, FindingKind::unstarted_cta_access, in, lane, out.address[lane], [&] {
        return fmt::format(
            "{} of {} bytes at shared address {:#x}{} of CTA {}: nothing orders it after the start of "
            "that CTA",
            verb(kind), bytes, location.address, location.cta->describe_shared(location.address),
            to_string(location.cta->index()));
      });
    }
    out.at[lane] = location.cta->shared().at(location.address);
    if (!shadowed) continue;
    const SharedVerdict verdict =
        consult_shadow(warp, location.cta->shared(), warp.accessor(in, lane), location.address, bytes, kind, out);
    if (verdict == SharedVerdict::uninitialised && out.follows_undefined) {
      out.undefined |= Mask{1} << lane;
    } else if (verdict != SharedVerdict::ok) {
      const std::byte* const value =
          out.values == nullptr ? nullptr : out.values + static_cast<std::size_t>(lane) * bytes;
      report_shared(warp, in, lane, location, bytes, verb(kind), verdict, value);
    }
  }
}

void resolve_local_or_param(Warp& warp, const Instruction& in, Mask lanes, AccessSize size, AccessKind kind,
                            LanePointers& out, bool local) {
  const std::uint32_t bytes = size.bytes;
  lanes = check_alignment(warp, in, lanes, size, kind, out, address_range(out, lanes));
  Cta& cta = warp.cta();
  const std::vector<std::byte>& parameters = cta.launch().parameters;
  const std::uint64_t end = local ? warp.program().local_bytes : parameters.size();
  const LocalVariable* variable = nullptr;
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const std::uint64_t address = out.address[lane];
    if (!Region{0, end}.contains(address, bytes)) {
      const FindingKind finding = local ? FindingKind::out_of_bounds_local : FindingKind::out_of_bounds_param;
      warp.report(Severity::error, finding, in, lane, address, [&] {
        return fmt::format("{} of {} bytes at offset {:#x} of {}, which has {} bytes", verb(kind), bytes, address,
                           local ? "the thread's local memory" : "the kernel's parameter space", end);
      });
      out.at[lane] = rejected_access(warp, in, kind);
      continue;
    }
    if (local && (variable == nullptr || !variable->contains(address, bytes))) {
      const std::vector<LocalVariable>& all = warp.program().local_variables;
      const auto after = std::ranges::upper_bound(all, address, {}, &LocalVariable::begin);
      variable = after == all.begin() ? nullptr : &*(after - 1);
      if (variable == nullptr || !variable->contains(address, bytes)) {
        warp.report(Severity::error, FindingKind::out_of_bounds_local, in, lane, address, [&] {
          const std::uint64_t last = variable == nullptr ? 0 : variable->begin + variable->size;
          return fmt::format(
              "{} of {} bytes at offset {:#x} of the thread's local memory, {} bytes past a variable's end", verb(kind),
              bytes, address, address - std::min(address, last));
        });
        out.at[lane] = rejected_access(warp, in, kind);
        continue;
      }
    }
    if (local) {
      out.local |= Mask{1} << lane;
      if (kind == AccessKind::write || kind == AccessKind::strong_write) {
        cta.mark_local(warp.index() * kWarpSize + lane, address, bytes, 0);
      } else if (out.follows_undefined && cta.is_local_undefined(warp.index() * kWarpSize + lane, address, bytes)) {
        out.undefined |= Mask{1} << lane;
      }
    }
    // The const_cast is safe: the decoder refuses st.param to the kernel's own parameters.
    out.at[lane] = local ? cta.local(warp.index() * kWarpSize + lane) + address
                         : const_cast<std::byte*>(parameters.data()) + address;
  }
}

void resolve_in_space(Warp& warp, const Instruction& in, Mask lanes, Space space, AccessSize size, AccessKind kind,
                      LanePointers& out) {
  if (Profile* const profile = warp.cta().launch().profile) {
    if (space == Space::global) profile->count_global(warp.code_index(in), lanes, out.address, size.bytes);
    if (space == Space::shared) profile->count_shared(warp.code_index(in), lanes, out.address, size.bytes);
  }
  switch (space) {
    case Space::global:
    case Space::constant:
      return resolve_global(warp, in, lanes, size, kind, out);
    case Space::shared:
      return resolve_shared(warp, in, lanes, size, kind, out);
    case Space::local:
      return resolve_local_or_param(warp, in, lanes, size, kind, out, true);
    case Space::param:
      return resolve_local_or_param(warp, in, lanes, size, kind, out, false);
    case Space::generic:
      break;
  }
  TILEWRIGHT_CHECK(false, "state space {} has no address resolution", static_cast<int>(space));
}

/// Resolves the lanes of each address window of the generic space together.
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
    if (space == Space::shared && warp.cta().cluster().size() > 1) make_relative(warp, in, same, true, out.address);
    resolve_in_space(warp, in, same, space, size, kind, out);
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

/// Compares as many addresses at a time as a vector of `kVectorBytes` has.
template <int kVectorBytes, class T>
[[gnu::always_inline]] inline bool are_consecutive_inline(const T* addresses, T bytes) {
  using Vector [[gnu::vector_size(kVectorBytes)]] = T;
  constexpr int kLanes = kVectorBytes / sizeof(T);
  Vector expected = {};
  for (int lane = 0; lane < kLanes; ++lane) expected[lane] = static_cast<T>(lane);
  expected = expected * bytes + addresses[0];
  Vector gaps = {};
  for (int lane = 0; lane < kWarpSize; lane += kLanes) {
    Vector some;
    std::memcpy(&some, addresses + lane, sizeof(some));
    gaps |= some ^ expected;
    expected += static_cast<T>(kLanes) * bytes;
  }
  return !any_bit(gaps);
}
template <class T>
TILEWRIGHT_TARGET_AVX512 bool are_consecutive_with_avx512(const T* addresses, T bytes) {
  return are_consecutive_inline<64>(addresses, bytes);
}
template <class T>
TILEWRIGHT_TARGET_FMA bool are_consecutive_with_fma(const T* addresses, T bytes) {
  return are_consecutive_inline<32>(addresses, bytes);
}
template <class T>
bool are_consecutive(const T* addresses, T bytes) {
  if (addresses[1] - addresses[0] != bytes) return false;
  if (has_avx512()) return are_consecutive_with_avx512(addresses, bytes);
  return has_hardware_fma() ? are_consecutive_with_fma(addresses, bytes) : are_consecutive_inline<16>(addresses, bytes);
}

}  // namespace

std::byte* resolve_consecutive(Warp& warp, const Instruction& in, Space space, std::uint32_t bytes, bool writes) {
  const AddressOperand& operand = in.address[0];
  const auto offset = static_cast<std::uint64_t>(operand.offset);
  const Launch& launch = warp.cta().launch();
  std::uint64_t address = 0;
  if (operand.register_bytes == 4) {
    const auto* const base = warp.reg<std::uint32_t>(in.op[operand.operand]);
    if (!are_consecutive(base, bytes)) return nullptr;
    address = static_cast<std::uint32_t>(base[0] + offset);
  } else {
    const auto* const base = warp.reg<std::uint64_t>(in.op[operand.operand]);
    if (!are_consecutive(base, std::uint64_t{bytes})) return nullptr;
    address = base[0] + offset;
  }
  if ((address & (bytes - 1)) != 0 || launch.profile != nullptr) return nullptr;
  if (space == Space::generic) {
    const std::uint64_t window = address & kWindowMask;
    if (window != 0 && window != kSharedWindow) return nullptr;
    space = window == 0 ? Space::global : Space::shared;
    address &= ~kWindowMask;
  }
  const std::uint64_t all = std::uint64_t{kWarpSize} * bytes;
  if (space == Space::shared) {
    if (address >> kClusterRankShift != static_cast<std::uint64_t>(warp.cta().rank())) return nullptr;
    address &= kSharedOffsetMask;
    SharedMemory& shared = warp.cta().shared();
    if (!shared.contains(address, all)) return nullptr;
    if (shared.shadowed() &&
        !shared.access_consecutive(warp.clocks.ordered, warp.accessor(in, 0), address, bytes, writes))
      return nullptr;
    return shared.at(address);
  }
  if (space != Space::global && space != Space::constant) return nullptr;
  if (warp.region == nullptr || !warp.region->contains(address, all)) {
    const Region* const region = launch.regions.find(address, all);
    if (region == nullptr) return nullptr;
    warp.region = region;
  }
  if (launch.global_shadow != nullptr && !launch.global_shadow->access_consecutive(warp, in, address, bytes, writes))
    return nullptr;
  return reinterpret_cast<std::byte*>(address);
}

const std::byte* resolve_parameter(Warp& warp, const Instruction& in, std::uint32_t bytes) {
  const AddressOperand& operand = in.address[0];
  if (!operand.is_constant || operand.register_bytes != 8) return nullptr;
  const std::vector<std::byte>& parameters = warp.cta().launch().parameters;
  const std::uint64_t address =
      *warp.reg<std::uint64_t>(in.op[operand.operand]) + static_cast<std::uint64_t>(operand.offset);
  if (address % bytes != 0 || !Region{0, parameters.size()}.contains(address, bytes)) return nullptr;
  return parameters.data() + address;
}

SharedLocation find_shared_location(Warp& warp, const Instruction& in, int lane, std::size_t which, AccessSize size,
                                    std::string_view verb) {
  LanePointers out;
  const Mask only = Mask{1} << lane;
  compute_addresses(warp, in.address[which], in.op, only, out);
  std::uint64_t& address = out.address[lane];
  const bool is_generic = (address & kWindowMask) == kSharedWindow;
  if (is_generic) address &= ~kWindowMask;
  if (warp.cta().cluster().size() > 1)
    make_relative(warp, in, only, is_generic || in.address[which].shared_cluster, out.address);
  check_alignment(warp, in, only, size, AccessKind::unshadowed, out, address_range(out, only));
  return find_shared(warp, in, lane, address, size.bytes, verb);
}

SharedLocation resolve_shared_location(Warp& warp, const Instruction& in, int lane, std::size_t which, AccessSize size,
                                       std::string_view verb) {
  const SharedLocation location = find_shared_location(warp, in, lane, which, size, verb);
  if (location.cta == nullptr) {
    warp.fail(FindingKind::out_of_bounds_shared, in, lane, 0,
              fmt::format("{} of {} bytes: the CTA cannot continue", verb, size.bytes));
  }
  return location;
}

void resolve(Warp& warp, const Instruction& in, Mask lanes, Space space, std::size_t which, AccessSize size,
             AccessKind kind, LanePointers& out) {
  out.shared = out.local = out.undefined = 0;
  compute_addresses(warp, in.address[which], in.op, lanes, out);
  if (space == Space::generic) return resolve_generic(warp, in, lanes, size, kind, out);
  if (space == Space::shared && warp.cta().cluster().size() > 1)
    make_relative(warp, in, lanes, in.address[which].shared_cluster, out.address);
  resolve_in_space(warp, in, lanes, space, size, kind, out);
}

void resolve_with_offsets(Warp& warp, const Instruction& in, Mask lanes, Space space, std::size_t which,
                          const std::int64_t* offsets, AccessSize size, AccessKind kind, LanePointers& out) {
  out.shared = out.local = out.undefined = 0;
  compute_addresses(warp, in.address[which], in.op, lanes, out);
  each_lane(lanes, [&](int l) { out.address[l] += static_cast<std::uint64_t>(offsets[l]); });
  if (space == Space::generic) return resolve_generic(warp, in, lanes, size, kind, out);
  if (space == Space::shared && warp.cta().cluster().size() > 1)
    make_relative(warp, in, lanes, in.address[which].shared_cluster, out.address);
  resolve_in_space(warp, in, lanes, space, size, kind, out);
}

SharedLocation locate_shared(Warp& warp, const Instruction& in, int lane, std::uint64_t address, std::uint64_t bytes,
                             std::string_view verb) {
  const SharedLocation location = find_shared(warp, in, lane, address, bytes, verb);
  if (location.cta == nullptr) {
    warp.fail(FindingKind::out_of_bounds_shared, in, lane, address,
              fmt::format("{} of {} bytes at shared address {:#x}: the CTA cannot continue", verb, bytes, address));
  }
  return location;
}

void report_shared(Warp& warp, const Instruction& in, int lane, const SharedLocation& location, std::uint32_t bytes,
                   std::string_view verb, SharedVerdict verdict, const std::byte* value) {
  Cta& cta = warp.cta();
  const SharedMemory& shared = location.cta->shared();
  const Accessor& other = shared.other();
  const auto what = [&] {
    return fmt::format("{} of {} bytes at shared address {:#x}{}", verb, bytes, location.address,
                       location.cta->describe_shared(location.address));
  };
  const auto describe_other = [&] { return cta.cluster().describe(other); };
  const auto report = [&](FindingKind kind, const auto& detail) {
    warp.report(Severity::error, kind, in, lane, location.address, detail);
  };
  switch (verdict) {
    case SharedVerdict::ok:
      return;
    case SharedVerdict::uninitialised:
      return cta.defer_finding(FindingKind::uninitialised_shared_read, warp.code_index(in),
                               warp.index() * kWarpSize + lane, location.address,
                               what() + ", " + location.cta->describe_undefined(location.address, bytes));
    case SharedVerdict::narrow_scope:
      return report(FindingKind::shared_race, [&] {
        return fmt::format("{}, and the write by {}: the scope of one of them does not include the other thread",
                           what(), describe_other());
      });
    case SharedVerdict::mixed_race:
      if (tests_before_update(warp.program(), shared.other_reads() ? other.code : warp.code_index(in))) return;
      return warp.report(Severity::warning, FindingKind::shared_race, in, lane, location.address, [&] {
        return fmt::format("{} with no barrier after the {} by {}: one of them is atomic or volatile, the other is not",
                           what(), shared.other_reads() ? "read" : "write", describe_other());
      });
    case SharedVerdict::unfenced_reuse:
      return warp.report(
          cta.launch().options.require_reuse_fences ? Severity::error : Severity::warning,
          FindingKind::missing_proxy_fence, in, lane, location.address, [&] {
            return fmt::format(
                "{} through the async proxy, which may be done before the {} by {}: no fence.proxy.async is between "
                "them{}",
                what(), shared.other_reads() ? "read" : "write", describe_other(),
                shared.other_reads() && warp.follows_loads() ? ", and no instruction had used the value that was read"
                                                             : "");
          });
    case SharedVerdict::unfenced:
      return report(FindingKind::missing_proxy_fence, [&] {
        return fmt::format("{} through the async proxy, with no fence.proxy.async after the write by {}", what(),
                           describe_other());
      });
    case SharedVerdict::race:
      if (is_async(other.agent) && shared.other_reads()) {
        return report(FindingKind::async_read_in_flight, [&] {
          return fmt::format("{} that {} may still be reading: no wait for it came before", what(), describe_other());
        });
      }
      if (cta.cluster().record_of(other.agent).kind == AgentRecord::Kind::mbarrier) {
        return report(FindingKind::async_write_in_flight, [&] {
          return fmt::format("{} that {} may still be writing: no wait for that mbarrier came before", what(),
                             describe_other());
        });
      }
      if (value != nullptr && !shared.other_reads() &&
          std::memcmp(location.cta->shared().at(location.address), value, bytes) == 0) {
        return warp.report(Severity::warning, FindingKind::shared_race, in, lane, location.address, [&] {
          return fmt::format("{} with no barrier after the write of the same value by {}", what(), describe_other());
        });
      }
      return report(FindingKind::shared_race, [&] {
        return fmt::format("{} with no barrier after the {} by {}", what(), shared.other_reads() ? "read" : "write",
                           describe_other());
      });
    case SharedVerdict::out_of_bounds:
      return report(FindingKind::out_of_bounds_shared,
                    [&] { return what() + ", which belongs to no shared variable"; });
    case SharedVerdict::in_flight:
      return report(FindingKind::async_write_in_flight, [&] {
        return fmt::format("{} that the cp.async of {} may still be writing: no cp.async.wait_group for it came before",
                           what(), describe_other());
      });
  }
}

}  // namespace tilewright::emulator
