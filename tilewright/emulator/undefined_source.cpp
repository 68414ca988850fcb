// Finds the undefined bytes of a load in the shadow of their memory, and describes them.
#include "tilewright/emulator/undefined_source.hpp"

#include <bit>
#include <string>
#include <vector>

#include "tilewright/emulator/cluster.hpp"
#include "tilewright/emulator/global_shadow.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"

namespace tilewright::emulator {

UndefinedSource::UndefinedSource(Warp& warp, const LanePointers& from) : warp_(warp), from_(from) {}

UndefinedSource::Memory UndefinedSource::memory_of(int lane) const {
  if (((from_.local >> lane) & 1) != 0) return Memory::local;
  return from_.address[lane] >> 32 != 0 ? Memory::global : Memory::shared;
}

bool UndefinedSource::is_undefined(int lane, std::uint64_t offset, std::uint32_t bytes) const {
  if (((from_.undefined >> lane) & 1) == 0) return false;
  const std::uint64_t address = from_.address[lane] + offset;
  Cta& cta = warp_.cta();
  switch (memory_of(lane)) {
    case Memory::local:
      return cta.is_local_undefined(warp_.index() * kWarpSize + lane, address, bytes);
    case Memory::global:
      return cta.launch().global_shadow->is_undefined(warp_, address, bytes);
    case Memory::shared:
      // All bytes that the lane has read from another CTA's shared memory count as undefined.
      return ((from_.shared >> lane) & 1) == 0 || cta.shared().is_undefined(address, bytes);
  }
  return true;
}

std::uint8_t UndefinedSource::undefined_bits(int lane, std::uint64_t offset) const {
  if (((from_.undefined >> lane) & 1) == 0) return 0;
  const std::uint64_t address = from_.address[lane] + offset;
  Cta& cta = warp_.cta();
  switch (memory_of(lane)) {
    case Memory::local:
      return cta.local_undefined_bits(warp_.index() * kWarpSize + lane, address);
    case Memory::global:
      return cta.launch().global_shadow->undefined_bits(warp_, address);
    case Memory::shared:
      return ((from_.shared >> lane) & 1) == 0 ? std::uint8_t{0xff} : cta.shared().undefined_bits(address);
  }
  return 0xff;
}

std::uint32_t UndefinedSource::new_origin(UndefinedValues& values, const Instruction& in, std::uint32_t bytes) const {
  std::vector<std::string> details(kWarpSize);
  std::vector<std::uint64_t> addresses;
  each_lane(from_.undefined, [&](int l) {
    std::string& detail = details[static_cast<std::size_t>(l)];
    const std::uint64_t address = from_.address[l];
    switch (memory_of(l)) {
      case Memory::local:
        detail =
            fmt::format("read of {} bytes at offset {:#x} of the thread's local memory, which hold no defined value",
                        bytes, address);
        break;
      case Memory::global:
        detail = fmt::format("read of {} bytes at global address {:#x}, which no one has written", bytes, address);
        addresses.resize(kWarpSize);
        addresses[static_cast<std::size_t>(l)] = address;
        break;
      case Memory::shared:
        detail = fmt::format("read of {} bytes at shared address {:#x}{}, {}", bytes, address,
                             warp_.cta().describe_shared(address),
                             ((from_.shared >> l) & 1) != 0 ? warp_.cta().describe_undefined(address, bytes)
                                                            : "which no thread has written");
        break;
    }
  });
  static constexpr FindingKind kKinds[] = {FindingKind::uninitialised_shared_read,
                                           FindingKind::uninitialised_local_read,
                                           FindingKind::uninitialised_global_read};
  const Memory first = memory_of(std::countr_zero(from_.undefined));
  return values.new_origin(kKinds[static_cast<int>(first)], warp_.code_index(in), std::move(details),
                           std::move(addresses));
}

}  // namespace tilewright::emulator
