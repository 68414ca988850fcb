// Copies of tiles from global to shared memory. The atom decides which instructions are appended; calls are the same.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/arch/tma_copy.hpp"
#include "tilewright/program/instructions.hpp"

namespace tilewright::program {

/// A tensor in global memory whose extents and strides may depend on launch variables.
struct Tensor {
  std::string name;  // of the launch's argument with its address
  DType element = DType::f16;
  std::vector<Number> extents;  // by mode
  std::vector<Number> strides;  // in elements; one of them is 1
};

/// How a tile is copied.
enum class CopyAtom : std::uint8_t {
  tma,       // cp.async.bulk.tensor: one thread copies the tile
  cp_async,  // cp.async of 16 bytes: all threads of a role copy
};

/// A tile in shared memory, as wgmma and ldmatrix read it.
struct SharedTile {
  layout::ComposedLayout layout;  // coordinates of the tile -> offset in elements
  DType element = DType::f16;
  std::int64_t bytes() const { return size(layout) * bits(element) / 8; }
  /// The period of the swizzle in bytes, of which the address of the tile must be a multiple; at least 16.
  std::int64_t alignment() const;
  /// @throws InvalidArgument unless `address` is a multiple of `bytes`
  static void check_alignment(const Number& address, std::int64_t bytes);
};

class TiledCopyBuilder {
 public:
  /// Declares the parameter that the copy needs: a tensor map or an address. `threads`: those that take part, for
  /// cp_async. Elements outside the tensor are zeros in the tile.
  /// @throws InvalidArgument, with the number, for what make_tma_copy() refuses, for elements of the tensor and the
  /// tile that differ in size, or are of two floating-point types other than f32 and tf32, for a multicast by cp_async,
  /// and for tiles in which 16 bytes of the tensor are not contiguous
  TiledCopyBuilder(KernelBuilder& k, CopyAtom atom, const Tensor& tensor, const SharedTile& tile, int threads = 1,
                   int multicast = 1);

  CopyAtom atom() const { return atom_; }
  /// Bytes that the mbarrier of a stage counts for one tile; 0 for cp_async.
  std::int64_t transaction_bytes() const { return tma_ ? tma_->transaction_bytes : 0; }
  /// The number of the tensor map in the kernel; -1 for cp_async.
  int tensor_map() const { return map_; }

  /// The threads that load, the CTAs that receive the tile, and the barrier that counts its bytes.
  struct Call {
    Number thread = 0;                          // from 0 to threads - 1, for cp_async
    Number barrier = 0;                         // an mbarrier that counts the bytes, for tma
    Number slice = 0;                           // of this CTA among those that share the tile, with multicast
    std::optional<Number> ctas = std::nullopt;  // mask of these CTAs
    CachePolicy policy = arch::kEvictNormal;
  };
  /// Appends the copy of the tile at `coordinates` of the tensor, to the shared address `to`. Coordinates may be
  /// negative, for the mode that is contiguous with tma only. @throws InvalidArgument for an address that may be no
  /// multiple of the swizzle's period, and for tma without a barrier
  void copy(const std::vector<Number>& coordinates, const Number& to, const Call& call) const;
  /// Appends the stores of the tile at the shared address `from` to `coordinates` of the tensor, in the current bulk
  /// group of this thread. Elements outside the tensor are not stored. @throws InvalidArgument for cp_async
  void store(const std::vector<Number>& coordinates, const Number& from) const;

 private:
  void check_rank(const std::vector<Number>& coordinates) const;
  /// The coordinates of a box, or of a slice of it, in the tensor map.
  std::vector<Number> box_at(const std::vector<Number>& coordinates, std::int64_t box, const Number& slice) const;
  void copy_by_tma(const std::vector<Number>& coordinates, const Number& to, const Call& call) const;
  void copy_by_cp_async(const std::vector<Number>& coordinates, const Number& to, const Call& call) const;

  KernelBuilder* kernel_;
  CopyAtom atom_;
  Tensor tensor_;
  SharedTile tile_;
  int threads_;
  int contiguous_ = 0;  // the mode with stride 1
  int map_ = -1;        // parameter of the tensor map
  std::optional<arch::TmaCopy> tma_;
  std::vector<int> modes_;  // of the tensor, for each mode of the map
  Value base_;              // address of the tensor, for cp_async
};

}  // namespace tilewright::program
