// Tensor maps that a CTA makes while it runs, because their fields are known only on the device: the address of each
// matrix of a pointer array, the end of each group, or all fields of the matrix of a group.
#pragma once

#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/tma.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// A ring of kSlots tensor maps in global memory. TMA reads a tensor map at some time before a load completes, so that
/// a slot may be overwritten only when all loads through it have completed. If the loads fill a ring of S stages, and
/// at least one load is issued through each tensor map, then kSlots = S + 1 needs no further wait: between a slot's
/// last load and its next use lie loads of S stages, and the stage of the last of these was only filled after its
/// readers had read the slot's last load.
template <int kSlots>
class TensorMapRing {
 public:
  static constexpr int kSharedBytes = sizeof(ptx::TensorMap);
  static constexpr int kBytes = kSlots * static_cast<int>(sizeof(ptx::TensorMap));  // of global memory, for each CTA

  /// `shared` is the shared address of kSharedBytes, `slots` the address of kBytes for this CTA, multiples of 128.
  __device__ __forceinline__ TensorMapRing(uint32_t shared, char* slots)
      : shared_(shared), slots_(reinterpret_cast<ptx::TensorMap*>(slots)) {}

  /// Must be called by a whole warp before the first replace(), which changes copies of `like`.
  __device__ __forceinline__ void begin(const ptx::TensorMap& like) const {
    const uint32_t lane = threadIdx.x % 32;
    ptx::store_shared(shared_ + lane * 4, reinterpret_cast<const uint32_t*>(&like)[lane]);
    __syncwarp();
  }

  /// The steps that make the tensor map of the matrix at `address`, or of a matrix whose mode kMode has `extent`
  /// elements, and put it in the next slot. The same warp must call one of the functions replace, __syncwarp(),
  /// publish() and acquire(), after which every lane may issue loads through map(). Rings of several operands take each
  /// step in turn: making two tensor maps takes as long as making one (311 ns on an H100).
  __device__ __forceinline__ void replace(const void* address) {
    slot_ = slot_ + 1 == kSlots ? 0 : slot_ + 1;
    if (threadIdx.x % 32 == 0) ptx::tensor_map_replace_address(shared_, address);
  }
  template <int kMode>
  __device__ __forceinline__ void replace_extent(int extent) {
    slot_ = slot_ + 1 == kSlots ? 0 : slot_ + 1;
    if (threadIdx.x % 32 == 0) ptx::tensor_map_replace_extent<kMode>(shared_, extent);
  }
  /// The same for the matrix at `address` whose `strided` lines of `contiguous` elements are `step` bytes apart.
  __device__ __forceinline__ void replace_matrix(const void* address, int contiguous, int strided, int64_t step) {
    slot_ = slot_ + 1 == kSlots ? 0 : slot_ + 1;
    if (threadIdx.x % 32 != 0) return;
    ptx::tensor_map_replace_address(shared_, address);
    ptx::tensor_map_replace_extent<0>(shared_, contiguous);
    ptx::tensor_map_replace_extent<1>(shared_, strided);
    ptx::tensor_map_replace_stride(shared_, step);
  }
  __device__ __forceinline__ void publish() const { ptx::tensor_map_publish(slots_ + slot_, shared_); }
  __device__ __forceinline__ void acquire() const { ptx::tensor_map_acquire(slots_ + slot_); }
  __device__ __forceinline__ const ptx::TensorMap& map() const { return slots_[slot_]; }

 private:
  uint32_t shared_;
  ptx::TensorMap* slots_;
  int slot_ = 0;
};

}  // namespace tilewright
