// How an operand of sm90_gemm comes to shared memory, and how its tile lies there.
#pragma once

#include <cstdint>
#include <optional>

#include "tilewright/arch/tma_copy.hpp"
#include "tilewright/arch/wgmma_fragment.hpp"
#include "tilewright/arch/wgmma_tile.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/op/gemm.hpp"

namespace tilewright::plan {

inline constexpr int kWgmmaM = 64;        // rows of one wgmma
inline constexpr int kTmaBytes = 16;      // what TMA's addresses and strides are multiples of
inline constexpr int kMaxRowBytes = 128;  // of a box: the widest swizzle

/// The same share of a copy for each box, or for each CTA that takes part: how far to go in the tensor map's modes and
/// in shared memory from one to the next.
struct TmaStep {
  std::int64_t contiguous = 0, strided = 0;  // elements of the tensor
  std::int64_t smem_bytes = 0;
  bool operator==(const TmaStep&) const = default;
};

/// How an operand comes to shared memory: by TMA unless it is gathered.
struct OperandPath {
  arch::Major major = arch::Major::k;  // of the tile, and of the copy where there is one
  int plain_load_bytes = 0;            // that a thread moves at once where TMA cannot reach the operand; else 0
  bool is_repacked = false;            // copied first: plan/sm90/repacking.hpp
  bool is_transposed = false;          // by that copy, from MN-major

  bool uses_plain_loads() const { return plain_load_bytes != 0; }
  bool operator==(const OperandPath&) const = default;
};

/// One operand's tile: in global memory as TMA boxes or as what threads gather; in shared memory as wgmma's descriptors
/// read it, or as threads load the fragments that they give to wgmma.
struct TmaOperandPlan : OperandPath {
  DType element = DType::f16;
  int mn = 0, k = 0;            // extents of the tile
  layout::ComposedLayout smem;  // (mn, k) -> elements
  arch::TensorMap map;          // contiguous, strided, batch; extents are the launch's
  int shares = 1;               // CTAs of a cluster that need the tile; each loads one slice of every box
  int boxes = 1;                // that one CTA loads
  TmaStep box, share;
  int alignment_bytes = 16;
  arch::WgmmaOperand wgmma;                      // unless there are
  std::optional<arch::FragmentLoads> fragments;  // of A, where wgmma does not read it as it lies

  /// What is contiguous in shared memory: the width of the swizzle.
  int row_bytes() const { return arch::width_bytes(*arch::swizzle_mode(smem.swizzle, bits(element))); }
  /// The lines, contiguous in global memory, that a pass of the producer's threads over a gathered tile reads from.
  int lines_of_pass() const { return lines_of_pass(plain_load_bytes, row_bytes()); }
  static int lines_of_pass(int plain_load_bytes, int row_bytes) {
    return kProducerThreads * plain_load_bytes / row_bytes;
  }
  /// Passes over the tile.
  int passes() const { return uses_plain_loads() ? tile_bytes() / (kProducerThreads * plain_load_bytes) : 0; }
  int tile_bytes() const { return mn * k * bits(element) / 8; }
  bool operator==(const TmaOperandPlan&) const = default;

  static constexpr int kProducerThreads = 128;
};

/// Of an operand that TMA can reach, 16; else what the addresses of threads that gather are multiples of.
int alignment_bytes(const op::TensorSignature& operand);

/// Repacked where it must be and `repacks` says so, by TMA where it can, else gathered.
OperandPath path_of(const op::TensorSignature& operand, arch::Major major, bool repacks);

/// Bytes of an operand's tile that lie together in memory, as far as a swizzle is wide: a power of two, at most 128.
int row_bytes(arch::Major major, int element_bytes, int mn, int k);

/// How often a byte of an operand so aligned is read by a thread of the producer: 0 by TMA, 1, or 2 where an element
/// lies across words.
int plain_load_reads(int alignment_bytes);

/// All but how wgmma or threads read the tile. `role` is A or B, `shares` the CTAs of a cluster that need the same
/// tile.
Result<TmaOperandPlan> plan_operand(char role, const op::TensorSignature& tensor, DType multiplied,
                                    const OperandPath& path, int tile_mn, int tile_k, int shares);

}  // namespace tilewright::plan
