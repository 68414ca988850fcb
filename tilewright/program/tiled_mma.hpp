// Products of tiles in shared memory on the tensor cores. The atom decides which instructions are appended; calls are
// the same.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "tilewright/arch/mma_atom.hpp"
#include "tilewright/arch/wgmma_tile.hpp"
#include "tilewright/program/instructions.hpp"
#include "tilewright/program/tiled_copy.hpp"

namespace tilewright::program {

/// wgmma: a warpgroup multiplies 64 rows of A by `n` rows of B. If the atom has A in registers, these are loaded from
/// shared memory by ldmatrix.
struct WgmmaChoice {
  const arch::WgmmaAtom* atom = nullptr;
  int n = 0;
};
/// mma.sync: a warp multiplies fragments that ldmatrix loads, or loads of single registers and elements where ldmatrix
/// does not have the fragment's layout: instructions with other than 32 bytes of k, MN-major elements other than of 16
/// bits, and B of an odd number of instructions.
struct MmaChoice {
  const arch::MmaAtom* atom = nullptr;
};

/// An operand of the product: (m, k) of A or (n, k) of B.
struct MmaOperand {
  arch::Major major = arch::Major::k;
  SharedTile tile;  // of one stage
};

/// The product of one stage: C[m, n] += A[m, k] * B[n, k].
struct TiledMma {
  std::variant<WgmmaChoice, MmaChoice> atom = {};
  /// Along m and n. Warpgroups of wgmma lie along m; each has m / warps_m rows and all columns.
  int warps_m = 4, warps_n = 1;
  MmaOperand a, b;
  /// Converts the registers of an A fragment that ldmatrix loaded, if A is stored in another type than it is multiplied
  /// in: gets them and the number of the instruction along k, and returns those of the atom.
  std::function<std::vector<Value>(const std::vector<Value>& loaded, const Number& row, int k)> convert_a = {};
};

/// The accumulators of a thread: one cell for each instruction along m and n of the warp or warpgroup, n fastest.
struct Accumulators {
  ValueCells cells;
  /// Whether an instruction has written them. The first wgmma overwrites the registers, which have no value before it.
  NumberCell started;
};

/// The place of an accumulator in the tile.
struct AccumulatorPlace {
  Number row, column;
};

/// Two accumulators of a thread in adjacent columns, and their place in the tile. Those of f16 are f32 here.
struct AccumulatorPair {
  Value low, high;
  Number row, column;
};

class TiledMmaBuilder {
 public:
  /// @throws InvalidArgument, with the number, for tiles that instructions and warps do not divide, for tiles of other
  /// elements than the atom multiplies, for majors that it does not read, for atoms that the target does not have, for
  /// more warps than the kernel has, and for what wgmma_tile() refuses
  TiledMmaBuilder(KernelBuilder& k, TiledMma mma);

  bool uses_wgmma() const { return std::holds_alternative<WgmmaChoice>(mma_.atom); }
  /// Threads that multiply.
  int threads() const { return 32 * mma_.warps_m * mma_.warps_n; }
  std::int64_t tile_m() const { return m_; }
  std::int64_t tile_n() const { return n_; }

  // The functions below throw InvalidArgument for the accumulators of another product, and for a `warp` that may not be
  // from 0 to threads() / 32 - 1.

  /// Accumulators that are zero, which costs no instruction with wgmma: for_each_pair() and transform() append the
  /// zeros if no product may have been added. The cells themselves are undefined until then.
  Accumulators zeros() const;

  /// Appends the product of the stages at the shared addresses `a` and `b`. `warp`: of those that multiply; the same in
  /// all lanes. With wgmma the product is one group, which is committed. It is not waited for, unless the atom has A in
  /// registers: the next fma() loads other fragments to them.
  void fma(const Accumulators& accumulators, const Number& a, const Number& b, const Number& warp) const;

  /// Appends the loads of all fragments of A of a stage, one value of the fragment's registers for each instruction
  /// along k and m, those of one step together; wgmma with A in registers only.
  std::vector<Value> load_fragments(const Number& a, const Number& warp) const;
  static constexpr int kFragmentRegisters = 4;
  std::int64_t fragment_count() const { return k_ / atom_.k * count_m_; }

  /// fma() with fragments of A that the caller loaded and converted, for the instructions along k from `first_step` on,
  /// those of one step together; wgmma with A in registers only. The registers are read until the group has been waited
  /// for: the caller makes cells of the fragments, and passes them to wait_for_wgmma() with the accumulators.
  void fma_fragments(const Accumulators& accumulators, const std::vector<std::vector<Value>>& fragments,
                     const Number& b, std::int64_t first_step) const;

  /// Accumulators of a thread, and the place of one of them, whose number may be one that only the kernel knows.
  std::int64_t accumulator_count() const { return count_m_ * count_n_ * values(); }
  AccumulatorPlace place(const Number& accumulator, const Number& warp) const;

  /// Calls `visit` for each pair of accumulators of a thread. @pre wgmma has been waited for
  void for_each_pair(const Accumulators& accumulators, const Number& warp,
                     const std::function<void(const AccumulatorPair&)>& visit) const;
  /// Replaces each pair by what `change` returns. @pre wgmma has been waited for
  void transform(const Accumulators& accumulators, const Number& warp,
                 const std::function<std::array<Value, 2>(const AccumulatorPair&)>& change) const;

 private:
  /// Accumulators of a thread that one instruction writes.
  int values() const { return atom_.c_registers * atom_.register_bits / bits(atom_.c); }
  /// @throws InvalidArgument unless load_elements() loads fragments of the operand
  void check_loads_by_elements(const MmaOperand& operand, std::string_view what) const;
  void check_warp(const Number& warp) const;
  void check_accumulators(const Accumulators& accumulators) const;
  /// Appends zeros for accumulators that no wgmma has written, if that may be so.
  void write_unstarted(const Accumulators& accumulators) const;
  Value zero_registers() const;
  void fma_by_wgmma(const Accumulators& accumulators, const Number& a, const Number& b, const Number& warp) const;
  /// One group of wgmma for `steps` instructions along k; `add_a` appends the operands of A.
  void issue_wgmma(
      const Accumulators& accumulators, std::int64_t first_step, std::int64_t steps, const Number& b,
      const std::function<void(std::int64_t step, std::int64_t m, std::vector<Operand>& operands)>& add_a) const;
  void fma_by_mma(const Accumulators& accumulators, const Number& a, const Number& b, const Number& warp) const;
  Value load_a(const Number& address, const Number& row, std::int64_t k) const;
  std::vector<Value> load_b(const Number& address, const Number& column, std::int64_t k) const;
  /// The fragment of the instruction whose first row of the operand is `row`, by loads of registers or elements.
  /// `thread_values` is its layout in a column-major tile of `rows` rows.
  std::vector<Value> load_elements(const MmaOperand& operand, const layout::Layout& thread_values, int rows,
                                   const Number& address, const Number& row, std::int64_t step) const;
  Number lane() const { return kernel_->thread() % 32; }

  KernelBuilder* kernel_;
  TiledMma mma_;
  arch::MmaAtom atom_;  // of one instruction
  std::optional<arch::WgmmaOperand> wgmma_a_, wgmma_b_;
  bool ldmatrix_a_ = false, ldmatrix_b_ = false;  // of mma.sync
  std::int64_t m_ = 0, n_ = 0, k_ = 0;            // of the tile
  std::int64_t count_m_ = 0, count_n_ = 0;        // instructions of a warp or warpgroup
};

}  // namespace tilewright::program
