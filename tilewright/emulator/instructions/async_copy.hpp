// The common part of bulk copies: accesses through the async proxy, completion, multicast and reductions.
#pragma once

#include "tilewright/emulator/access.hpp"
#include "tilewright/emulator/cluster.hpp"
#include "tilewright/emulator/instruction_reader.hpp"
#include "tilewright/emulator/instructions/mbarrier_object.hpp"

namespace tilewright::emulator {

enum class Proxy : std::uint8_t { generic, async };

/// A bulk copy that one thread issues. It moves its bytes at once; for the shadow, its accesses are in flight until a
/// wait for its mbarrier or bulk group.
class AsyncCopy {
 public:
  /// The copy completes on an mbarrier or, if that is null, with the thread's current bulk group.
  AsyncCopy(Warp& warp, const Instruction& in, int lane, const Mbarrier* completes_on = nullptr);

  /// @throws EmulationFinding: out of bounds, race, asynchronous access in flight, missing proxy fence
  void write_shared(const SharedLocation& to, const std::byte* from, std::uint32_t bytes, Proxy proxy = Proxy::async);
  const std::byte* read_shared(const SharedLocation& from, std::uint32_t bytes);
  /// write_shared() has copied these bytes from global memory: those that no one has written are undefined in shared
  /// memory.
  void follow_undefined(const SharedLocation& to, std::uint64_t from, std::uint32_t bytes);
  /// The copy reads the tensor map at this address until it completes.
  void use_tensor_map(std::uint64_t address);
  /// Host pointer to global memory. A reduction reads what it writes.
  /// @throws EmulationFinding out_of_bounds_global, global_race, missing_proxy_fence
  const std::byte* read_global(std::uint64_t address, std::uint64_t bytes, std::string_view verb);
  std::byte* write_global(std::uint64_t address, std::uint64_t bytes, std::string_view verb, bool is_reduction);

 private:
  /// @throws EmulationFinding out_of_bounds_global
  void check_global(std::uint64_t address, std::uint64_t bytes, std::string_view verb) const;
  /// @throws EmulationFinding out_of_bounds_shared
  void check_inside(const SharedLocation& location, std::uint32_t bytes, std::string_view verb);
  void report(const SharedLocation& location, std::uint32_t bytes, std::string_view verb, SharedVerdict verdict);

  Warp& warp_;
  const Instruction& in_;
  int lane_;
  Accessor accessor_;
};

/// Performs complete_tx of the bytes on the mbarrier, through the proxy of the copy.
/// @throws EmulationFinding mbarrier_misuse, missing_proxy_fence
void complete_on(Warp& warp, const Instruction& in, int lane, const MbarrierObject& at, std::uint64_t bytes,
                 Proxy proxy = Proxy::async);

/// @throws EmulationFinding bad_descriptor: the CTA mask is 0 or names a CTA that the cluster does not have
void check_multicast(Warp& warp, const Instruction& in, int lane, std::uint32_t mask);

/// Combines one element in memory with the operand, as cp.reduce does.
using ReduceElement = void (*)(std::byte* memory, const std::byte* operand);

enum class Reduction : std::uint8_t { add, min, max, inc, dec, bitwise_and, bitwise_or, bitwise_xor };

/// Null when PTX does not define the reduction for the type.
ReduceElement find_reduction(PtxType type, Reduction reduction);
/// Takes the modifier that names the reduction; refuses an instruction without one.
Reduction take_reduction(InstructionReader& reader);

}  // namespace tilewright::emulator
