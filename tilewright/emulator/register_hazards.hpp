// Checks of the registers that wgmma uses asynchronously: wgmma.fence before it, wgmma.wait_group after it.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/emulator/program.hpp"

namespace tilewright::emulator {

class Warp;

/// PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions": registers of a wgmma.mma_async may not be accessed
/// before the wgmma.wait_group that retires it, and a wgmma.fence must follow the instructions that wrote them. A mov
/// is taken as a renaming, not as an access: compilers leave movs in the PTX, which ptxas removes.
class RegisterHazards {
 public:
  explicit RegisterHazards(const Program& program);
  void reset();

  /// Called before each instruction; checks all but wgmma, and reports wgmma_register_in_flight.
  void check(Warp& warp, const Instruction& instruction);

  void fence(std::uint64_t step) { fenced_at_ = step; }
  /// Whether no wgmma.fence follows the last write of a register that a wgmma is about to use.
  bool unfenced(Slot slot) const { return fenced_at_ == 0 || written_at_[index_of(slot)] > fenced_at_; }
  bool in_flight_as_accumulator(Slot slot) const { return (in_flight_[index_of(slot)] & kAccumulator) != 0; }
  /// A wgmma of `group`, at `code` in Program::code, uses the register.
  void issue(Slot slot, std::uint32_t group, std::uint32_t code, bool accumulator) {
    const std::size_t at = index_of(slot);
    if (in_flight_[at] == 0) in_flight_registers_.push_back(at);
    in_flight_[at] = group | (accumulator ? kAccumulator : 0);
    issued_by_[at] = code;
  }
  /// Groups up to and including this one are complete.
  void retire(std::uint32_t group);

 private:
  static constexpr std::uint32_t kAccumulator = 1U << 31;
  static std::size_t index_of(Slot slot) { return slot / kSlotAlignment; }

  void copy(Warp& warp, const Instruction& mov);
  void report(Warp& warp, const Instruction& instruction, std::size_t at, bool writes) const;

  // By register:
  std::vector<std::uint32_t> in_flight_;   // 0, or the wgmma group that uses it, with kAccumulator when it accumulates
  std::vector<std::uint32_t> issued_by_;   // index in Program::code of that wgmma
  std::vector<std::uint64_t> written_at_;  // Warp::steps() at the last write

  std::vector<std::size_t> in_flight_registers_;
  std::uint64_t fenced_at_ = 0;  // Warp::steps() at the last wgmma.fence; 0: none
};

}  // namespace tilewright::emulator
