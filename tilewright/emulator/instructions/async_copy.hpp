// What bulk copies have in common: accesses to shared memory through the asynchronous proxy, to global memory, and how
// they complete.
#pragma once

#include "tilewright/emulator/access.hpp"
#include "tilewright/emulator/cluster.hpp"
#include "tilewright/emulator/instruction_reader.hpp"
#include "tilewright/emulator/instructions/mbarrier_object.hpp"

namespace tilewright::emulator {

/// A copy that one thread issues. It moves its bytes at once; what it read and wrote stays in flight until it is waited
/// for.
class AsyncCopy {
 public:
  /// Completes on an mbarrier, or, where there is none, with the thread's next bulk group.
  AsyncCopy(Warp& warp, const Instruction& in, int lane, const Mbarrier* completes_on = nullptr);

  /// @throws EmulationFinding: out of bounds, and what the shadow finds
  void write_shared(const SharedPlace& to, const std::byte* from, std::uint32_t bytes);
  const std::byte* read_shared(const SharedPlace& from, std::uint32_t bytes);
  /// The host's view of global memory. @throws EmulationFinding out_of_bounds_global
  std::byte* global(std::uint64_t address, std::uint64_t bytes, std::string_view verb);

 private:
  void report(const SharedPlace& place, std::uint32_t bytes, std::string_view verb, SharedVerdict verdict);

  Warp& warp_;
  const Instruction& in_;
  int lane_;
  Accessor who_;
};

/// Signals the bytes to the mbarrier. @throws EmulationFinding mbarrier_misuse
void complete_on(Warp& warp, const Instruction& in, int lane, const MbarrierPlace& at, std::uint64_t bytes);

/// Calls f(cta) for each CTA that `mask` names, or for the one of `place` when there is no mask.
/// @throws EmulationFinding where the mask names a CTA that the cluster has not
void check_multicast(Warp& warp, const Instruction& in, int lane, std::uint32_t mask);

/// The update of one element of global memory by a reducing copy.
using UpdateElement = void (*)(std::byte* memory, const std::byte* operand);

enum class Reduction : std::uint8_t { add, min, max, inc, dec, bitwise_and, bitwise_or, bitwise_xor };

/// Null where PTX has no such reduction of the type.
UpdateElement find_update(PtxType type, Reduction reduction);
/// Takes the modifier of a reduction. Refuses when there is none.
Reduction take_reduction(InstructionReader& reader);

}  // namespace tilewright::emulator
