// Registers of a warp that wgmma works on behind its back: in flight until waited for, and fenced before.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/emulator/program.hpp"

namespace tilewright::emulator {

class Warp;

/// PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions": registers of a wgmma.mma_async may not be accessed
/// before the wait that retires it, and what wrote them before must be followed by wgmma.fence. A mov counts as a new
/// name for the same register: compilers leave them for ptxas to remove.
class RegisterHazards {
 public:
  explicit RegisterHazards(const Program& program);
  void reset();

  /// Before any instruction but wgmma: @throws EmulationFinding accumulator_in_flight.
  void check(Warp& warp, const Instruction& instruction);

  void fence(std::uint64_t step) { fenced_at_ = step; }
  /// Of a register that a wgmma is about to read or write.
  bool unfenced(Slot slot) const { return fenced_at_ == 0 || written_at_[line(slot)] > fenced_at_; }
  bool in_flight_as_accumulator(Slot slot) const { return (in_flight_[line(slot)] & kAccumulator) != 0; }
  void begin(Slot slot, std::uint32_t group, std::uint32_t code, bool accumulator);
  /// Groups up to this one are waited for.
  void retire(std::uint32_t group);

 private:
  static constexpr std::uint32_t kAccumulator = 1U << 31;
  static std::size_t line(Slot slot) { return slot / 64; }

  void copy(Warp& warp, const Instruction& mov);
  [[noreturn]] void fail(Warp& warp, const Instruction& instruction, std::size_t at, bool writes) const;

  std::vector<std::uint32_t> in_flight_;  // by register: 0, or the group, with kAccumulator
  std::vector<std::uint32_t> begun_by_;   // by register: index in Program::code
  std::vector<std::uint64_t> written_at_;
  std::vector<std::size_t> busy_;  // registers in flight
  std::uint64_t fenced_at_ = 0;
};

}  // namespace tilewright::emulator
