// A decoded kernel, which warps execute: handlers, and operands as slots of the register file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/base/target.hpp"
#include "tilewright/emulator/ptx_module.hpp"
#include "tilewright/emulator/value_flow.hpp"

namespace tilewright::emulator {

class Warp;
struct Instruction;

inline constexpr int kWarpSize = 32;

/// One bit per lane.
using Mask = std::uint32_t;
inline constexpr Mask kAllLanes = ~Mask{0};

/// Byte offset, in a warp's register file, of the 32 lanes of one register; a predicate is one Mask.
using Slot = std::uint32_t;
/// Alignment of the slots of all registers but predicates: a cache line of the host.
inline constexpr Slot kSlotAlignment = 64;

/// Executes an instruction for the lanes of `mask`, which is never empty.
using Handler = void (*)(Warp& warp, const Instruction& instruction, Mask mask);

/// Windows of the other state spaces in the generic address space. No host pointer, which is what a global address is,
/// has bits this high.
inline constexpr std::uint64_t kSharedWindow = std::uint64_t{1} << 56;
inline constexpr std::uint64_t kLocalWindow = std::uint64_t{2} << 56;
inline constexpr std::uint64_t kParamWindow = std::uint64_t{3} << 56;
inline constexpr std::uint64_t kFunctionWindow = std::uint64_t{4} << 56;
/// The value of a pointer to a function, by its index in Module::functions.
constexpr std::uint64_t function_address(std::uint32_t index) {
  return kFunctionWindow + 16 * (std::uint64_t{index} + 1);
}
inline constexpr std::uint64_t kWindowMask = ~((std::uint64_t{1} << 56) - 1);

/// The first KiB of shared memory is reserved for system use, as on sm_80 and later, so that 0 is no valid address.
inline constexpr std::uint32_t kSharedBase = 1024;
/// The part of the system's shared memory that cooperative groups use, whose address is %reserved_smem_offset_1: CUDA's
/// cooperative_groups/details/memory.h expects at least so many bytes, of zeros. The emulator has them only for
/// programs that read such a register, at kSharedBase.
inline constexpr std::uint32_t kReservedSharedBytes = 288;

/// [base + offset]
struct AddressOperand {
  std::int64_t offset = 0;
  std::uint8_t operand = 0;         // of the base register, in Instruction::op
  std::uint8_t register_bytes = 8;  // width of the base register: 4 or 8
  bool shared_cluster = false;      // of a shared address: the instruction says .shared::cluster
  bool is_constant = false;         // the base is no register but a variable or a number
};

/// The kind of an instruction's register accesses, for RegisterHazards and UnusedLoads. loads: from memory, perhaps
/// shared memory.
enum class RegisterUse : std::uint8_t { ordinary, copies, loads, wgmma };

struct Instruction {
  Handler execute = nullptr;
  const Slot* op = nullptr;         // operands; each handler documents their order
  std::int64_t immediate = 0;       // meaning is the handler's
  const void* table = nullptr;      // a row of a table of the handler
  Slot guard = kNone;               // kNone: unguarded
  Mask guard_flip = 0;              // all ones for @!p
  std::uint32_t target = kNone;     // of a branch: index into Program::code
  std::uint32_t first_operand = 0;  // index into Program::operands of op[0]
  std::uint32_t written = 0;        // bit i: operand i is a destination, for the first 32 operands
  std::uint16_t operand_count = 0;
  AddressOperand address[3];
  std::uint8_t element_bytes = 0;  // size of one element in memory
  std::uint8_t elements = 1;       // number of elements of a vector access
  std::uint8_t mode = 0;           // decoded modifiers; meaning is the handler's
  bool is_atomic = false;          // atom and red
  RegisterUse registers = RegisterUse::ordinary;
  ValueFlow flow = ValueFlow::whole;
};

enum class SpecialRegister : std::uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  clusterid_x,
  clusterid_y,
  clusterid_z,
  nclusterid_x,
  nclusterid_y,
  nclusterid_z,
  cluster_ctaid_x,
  cluster_ctaid_y,
  cluster_ctaid_z,
  cluster_nctaid_x,
  cluster_nctaid_y,
  cluster_nctaid_z,
  cluster_ctarank,
  cluster_nctarank,
  is_explicit_cluster,
  laneid,
  warpid,
  nwarpid,
  smid,
  nsmid,
  gridid,
  envreg1,
  envreg2,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  dynamic_smem_size,
  total_smem_size,
  reserved_smem_offset_begin,
  reserved_smem_offset_end,
  reserved_smem_offset_cap,
  reserved_smem_offset_1,
};

struct SpecialSlot {
  Slot slot = 0;
  SpecialRegister what = SpecialRegister::tid_x;
};

/// A register that holds one value in all lanes for the whole launch.
struct ConstantSlot {
  Slot slot = 0;
  std::uint8_t width = 4;          // bytes per lane; 0: a predicate
  bool is_shared_address = false;  // each CTA of a cluster adds its rank, see kClusterRankShift
  std::uint64_t bits = 0;
};

struct SharedVariable {
  std::string name;
  std::uint32_t begin = 0;
  std::uint32_t size = 0;  // 0: the dynamic shared memory
};

/// A variable in the local memory of each thread. All local arrays of a function are one variable of its PTX.
struct LocalVariable {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;

  bool contains(std::uint64_t address, std::uint64_t bytes) const {
    return address >= begin && address - begin <= size && bytes <= size - (address - begin);
  }
};

/// The bytes of one parameter in the kernel's parameter space.
struct ParameterRange {
  std::size_t begin = 0;
  std::size_t size = 0;
};

struct Program {
  std::vector<Instruction> code;
  std::vector<const ParsedInstruction*> origins;  // of each instruction of `code`
  std::vector<Slot> operands;
  std::vector<std::vector<std::uint32_t>> branch_tables;
  std::vector<std::shared_ptr<const void>> tables;  // that instructions point to
  std::vector<std::string> refusals;                // why an instruction is not supported, see execute_refused()
  std::vector<ConstantSlot> constants;
  std::vector<SpecialSlot> specials;
  std::vector<SharedVariable> shared_variables;  // by address; the dynamic ones last
  std::size_t register_bytes = 0;
  /// By slot / kSlotAlignment, of the slots of all registers but predicates: bytes per lane.
  std::vector<std::uint8_t> register_widths;
  std::uint32_t static_shared_bytes = 0;
  bool has_reserved_shared = false;                  // kReservedSharedBytes
  std::uint32_t dynamic_shared_begin = kSharedBase;  // end of the static shared memory and its red zones
  std::uint32_t local_bytes = 0;                     // per thread
  std::vector<LocalVariable> local_variables;        // by address, with red zones in between
  std::vector<ParameterRange> parameters;
  std::uint32_t parameter_bytes = 0;
  std::uint32_t required_block[3] = {0, 0, 0};
  std::uint32_t maximum_block = 0;
  std::uint32_t required_cluster[3] = {0, 0, 0};
  bool uses_wgmma = false;
  bool uses_bulk_copies = false;
  bool uses_heap = false;
  bool prints = false;               // by printf()
  bool launches_dependents = false;  // griddepcontrol.launch_dependents

  /// Bytes per lane; 0 for a predicate.
  std::size_t width(Slot slot) const {
    const std::size_t line = slot / kSlotAlignment;
    return slot % kSlotAlignment == 0 && line < register_widths.size() ? register_widths[line] : 0;
  }
};

/// Decodes `kernel` of `module` and inlines the functions it calls. `global_addresses` has the address of each module
/// variable in .global and .const. The result points into `module`.
/// An instruction that the emulator or the target does not have reports that when it is executed.
/// @throws EmulationFinding: malformed_ptx, or unsupported_instruction for a kernel that is too large
Program build_program(const Module& module, const Function& kernel, const std::vector<std::uint64_t>& global_addresses,
                      const Target& target);

/// Whether the thread of the plain read with this index in Program::code may soon execute an atomic. A loop of
/// compare-and-swap begins with such a read, and `if (x > *most) atomicMax(most, x)` tests by one. The atomic decides,
/// so that an outdated value does no harm. The address of the atomic is not known here.
bool tests_before_update(const Program& program, std::uint32_t read);

}  // namespace tilewright::emulator
