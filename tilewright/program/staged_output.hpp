// Stores a matrix from the accumulators of wgmma through shared memory: each warpgroup writes panels of 64 rows to
// swizzled buffers of its own, and TMA stores them while the warpgroup goes on.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "tilewright/program/roles.hpp"
#include "tilewright/program/tiled_copy.hpp"

namespace tilewright::program {

/// How D is staged.
struct StagingUse {
  /// k: D is contiguous along n; mn: along m.
  arch::Major major = arch::Major::k;
  int columns = 64;  // of a panel; if D is contiguous along n, lines of at most 128 bytes
  int panels_m = 1;  // of a warpgroup's part of a tile, along m and n
  int panels_n = 2;
  int buffers = 2;        // of a warpgroup, one panel each
  int warpgroups = 1;     // that store
  int first_barrier = 1;  // named barrier of the first warpgroup; the others have the next ones
  int panels() const { return panels_m * panels_n; }
};

/// The buffers, and the tensor map of D.
class StagedOutput {
 public:
  static constexpr int kRows = 64;  // of a panel

  /// Reserves the buffers. `d` has the modes (m, n), and may have a third one for batches; its element is f16, bf16 or,
  /// if it is contiguous along n, f32. @throws InvalidArgument, with the number, for fewer than two buffers, for f32
  /// along m, and for what TiledCopyBuilder refuses
  StagedOutput(KernelBuilder& k, const Tensor& d, const StagingUse& use);

  const StagingUse& use() const { return use_; }
  const TiledCopyBuilder& copy() const { return copy_; }
  std::int64_t panel_bytes() const { return tile_.bytes(); }
  /// The shared address of a buffer of a warpgroup.
  Number buffer(const Number& warpgroup, const Number& index) const {
    return memory_.address + (warpgroup * use_.buffers + index) * tile_.bytes();
  }
  const SharedTile& tile() const { return tile_; }
  DType element() const { return tile_.element; }

 private:
  StagingUse use_;
  SharedTile tile_;
  TiledCopyBuilder copy_;
  SharedMemory memory_;
};

/// The part of a warpgroup. Made where its role begins.
class StagedWriter {
 public:
  /// `warp`: of the warpgroups that store, the same in all lanes.
  StagedWriter(KernelBuilder& k, const StagedOutput& output, const RoleThread& me, const Number& warp);

  /// Begins a tile whose part of this warpgroup is at (row, column) of matrix `batch`, if D has batches.
  void begin(const Number& row, const Number& column, const std::optional<Number>& batch = std::nullopt);
  /// Appends the store of the next two elements of the thread to the buffer: f32, in the order of
  /// TiledMmaBuilder::for_each_pair() with wgmma. The last elements of a panel are followed by its TMA store.
  void put(const std::array<Value, 2>& elements);
  /// Waits until TMA has read the buffers. Needed at the end of the role.
  void finish() const;

 private:
  void write_matrices() const;
  void write_pair(const std::array<Value, 2>& elements) const;
  void send();
  Number address(const Number& row, const Number& column) const;

  KernelBuilder* kernel_;
  const StagedOutput* output_;
  RoleThread me_;
  Number warp_;
  std::optional<NumberCell> next_;  // buffer, where it is not known statically
  Number row_, column_;             // of the tile
  std::optional<Number> batch_;
  int panel_ = 0, pair_ = 0;   // that come next, of the tile and of the panel
  std::vector<Value> packed_;  // what the next stmatrix stores
};

}  // namespace tilewright::program
