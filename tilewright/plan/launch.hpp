// A launch holds the numbers that the runtime needs to start a planned kernel on given arguments.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "tilewright/base/error.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/base/tensor_map.hpp"

namespace tilewright::plan {

/// A tensor map that the kernel takes as a parameter. The device encodes it, because the encoded form is opaque.
struct TensorMapRequest {
  TensorMap map;
  bool is_in_workspace = false;      // map.address is an offset from the beginning of the workspace
  std::size_t parameter_offset = 0;  // offset of the encoded map in the kernel's parameters
};

inline constexpr std::size_t kTensorMapBytes = sizeof(EncodedTensorMap);
inline constexpr std::size_t kTensorMapAlignment = alignof(EncodedTensorMap);

/// A workspace begins with counters. The first are those of barriers among groups of CTAs; every kernel leaves them in
/// the state that pipeline/grid_barrier.cuh describes, so that the next kernel can use them. Next come the arrival
/// counters of reductions, which are zero between launches, and last the counter of the grid-wide barrier.
inline constexpr int kGroupBarriers = 1024, kGroupBarrierBytes = 32;  // the latter is GridBarrier::kCounterStep
inline constexpr std::size_t kReductionCountersFrom = std::size_t{kGroupBarriers} * kGroupBarrierBytes;
inline constexpr std::size_t kReductionCounterBytes = 253920;
inline constexpr std::size_t kWorkspaceCounterBytes = kReductionCountersFrom + kReductionCounterBytes + 32;

/// Limit on the workspace of one launch; planning refuses launches that need more.
inline constexpr std::int64_t kMaxWorkspaceBytes = std::int64_t{4} << 30;

/// Temporary device memory for one launch of a kernel that uses no counters.
struct Workspace {
  std::size_t bytes = 0;
  std::size_t alignment = 256;   // a power of two
  std::size_t zeroed_bytes = 0;  // leading bytes that must be zero when the kernel starts; the rest is uninitialized
};

/// The requirements of one launch on its workspace.
struct WorkspaceNeeds {
  std::size_t bytes = 0;
  std::size_t begin = 0;         // offset of the part that is passed to the kernel, before it is aligned
  std::size_t alignment = 1;     // alignment of the address that is passed to the kernel
  std::size_t zeroed_bytes = 0;  // bytes from that address on that must be zero when the kernel starts

  /// The address that is passed to the kernel for a workspace at `address`.
  std::uint64_t given(std::uint64_t address) const { return round_up(address + begin, alignment); }
};

struct Launch {
  std::array<std::uint32_t, 3> grid{1, 1, 1};     // in CTAs
  std::array<std::uint32_t, 3> block{1, 1, 1};    // in threads
  std::array<std::uint32_t, 3> cluster{1, 1, 1};  // in CTAs
  std::uint32_t dynamic_smem_bytes = 0;
  bool cooperative = false;  // cooperative launch: all CTAs must be resident at once because they wait for each other
  /// Whether the kernel executes griddepcontrol.wait before it accesses global memory, so that it may start while the
  /// last kernel of its stream ends; see engine::Options::overlap_launches.
  bool waits_for_last_kernel = false;
  int ctas_per_sm = 1;  // of a cooperative launch: the number of CTAs that one SM holds at once

  /// The bytes of the struct that the kernel takes by value. The layout follows the rules of C++: each field lies at a
  /// multiple of its alignment.
  std::span<const std::byte> parameters() const { return {parameter_bytes_.data(), parameter_size_}; }

  /// Appends a field. The kernel's struct must list the same types in the same order.
  template <class T>
  void append(const T& value) {
    std::memcpy(parameter_bytes_.data() + reserve(sizeof(T), alignof(T)), &value, sizeof(T));
  }

  /// Offset in parameters() of the field that was appended last.
  std::size_t last_offset() const { return last_offset_; }

  /// Appends bytes. Their alignment is the largest power of two up to 8 that divides their number.
  void append(std::span<const std::byte> bytes) {
    const std::size_t alignment = std::min<std::size_t>(8, bytes.size() & (~bytes.size() + 1));
    std::memcpy(parameter_bytes_.data() + reserve(bytes.size(), std::max<std::size_t>(1, alignment)), bytes.data(),
                bytes.size());
  }

  /// Appends a separate kernel parameter, for a kernel declared like kernel(const double* a, double* d, int m) instead
  /// of with one struct. A launch must append all its parameters this way or none. Takes the same types as append().
  /// @throws InvalidArgument beyond kMaxParameters
  template <class T>
  void append_parameter(const T& value) {
    if (own_parameters_ == own_offsets_.size()) {
      throw InvalidArgument(fmt::format("a kernel takes at most {} separate parameters", own_offsets_.size()));
    }
    append(value);
    own_offsets_[own_parameters_] = static_cast<std::uint16_t>(last_offset_);
    own_sizes_[own_parameters_++] = static_cast<std::uint16_t>(parameter_size_ - last_offset_);
  }
  /// Offsets in parameters() and sizes in bytes of the separate parameters. Both are empty if the kernel takes one
  /// struct.
  std::span<const std::uint16_t> parameter_offsets() const { return {own_offsets_.data(), own_parameters_}; }
  std::span<const std::uint16_t> parameter_sizes() const { return {own_sizes_.data(), own_parameters_}; }

  /// Appends a tensor map. set_tensor_map fills in its bytes later.
  void append(TensorMapRequest request) {
    TILEWRIGHT_CHECK(tensor_map_count_ < tensor_maps_.size(), "a kernel takes at most {} tensor maps",
                     tensor_maps_.size());
    request.parameter_offset = reserve(kTensorMapBytes, kTensorMapAlignment);
    tensor_maps_[tensor_map_count_++] = request;
  }
  std::span<const TensorMapRequest> tensor_maps() const { return {tensor_maps_.data(), tensor_map_count_}; }
  void set_tensor_map(const TensorMapRequest& request, const EncodedTensorMap& encoded) {
    std::memcpy(parameter_bytes_.data() + request.parameter_offset, encoded.bytes.data(), encoded.bytes.size());
  }

  /// Appends the address of a workspace, which only this launch uses while it runs. set_workspace fills in the address
  /// later; it stays null if `bytes` is 0. The workspace is zeroed before its first use and then holds what the
  /// previous kernel left; see kWorkspaceCounterBytes.
  /// @throws InvalidArgument if the launch already has a workspace
  void append_workspace(std::size_t bytes) { reserve_workspace({.bytes = bytes}); }
  /// Appends a workspace for a kernel that keeps no counters. Its memory follows the counters of other kernels.
  void append(const Workspace& workspace) {
    reserve_workspace(
        {.bytes = workspace.bytes == 0 ? 0 : kWorkspaceCounterBytes + workspace.alignment + workspace.bytes,
         .begin = kWorkspaceCounterBytes,
         .alignment = workspace.alignment,
         .zeroed_bytes = workspace.zeroed_bytes});
  }
  /// Makes the workspace at least `bytes` large, for other launches that share it. The kernel need not take its
  /// address.
  void enlarge_workspace(std::size_t bytes) { workspace_.bytes = std::max(workspace_.bytes, bytes); }
  std::size_t workspace_bytes() const { return workspace_.bytes; }
  const WorkspaceNeeds& workspace() const { return workspace_; }
  /// Does nothing if the kernel takes no workspace. @pre workspace_bytes() != 0
  void set_workspace(std::uint64_t address) {
    if (workspace_offset_ == kNowhere) return;
    address = workspace_.given(address);
    std::memcpy(parameter_bytes_.data() + workspace_offset_, &address, sizeof address);
  }

  /// Ends the struct or a nested one by rounding its size up to a multiple of its alignment, as C++ does.
  void finish(std::size_t alignment = 8) { parameter_size_ = round_up(parameter_size_, alignment); }

 private:
  static constexpr std::size_t kMaxParameters = 40;
  static constexpr std::size_t kNowhere = ~std::size_t{0};

  void reserve_workspace(const WorkspaceNeeds& needs) {
    if (workspace_offset_ != kNowhere) {
      throw InvalidArgument(fmt::format("a launch has one workspace, cannot append another of {} bytes", needs.bytes));
    }
    workspace_offset_ = reserve(sizeof(std::uint64_t), sizeof(std::uint64_t));
    workspace_ = needs;
  }

  std::size_t reserve(std::size_t bytes, std::size_t alignment) {
    const std::size_t at = round_up(parameter_size_, alignment);
    if (at + bytes > parameter_bytes_.size())
      throw InvalidArgument(fmt::format("kernel parameters exceed {} bytes", parameter_bytes_.size()));
    parameter_size_ = at + bytes;
    last_offset_ = at;
    return at;
  }

  alignas(kTensorMapAlignment) std::array<std::byte, 8192> parameter_bytes_{};
  std::size_t parameter_size_ = 0;
  std::size_t last_offset_ = 0;
  std::size_t workspace_offset_ = kNowhere;
  WorkspaceNeeds workspace_;
  std::array<std::uint16_t, kMaxParameters> own_offsets_{};
  std::array<std::uint16_t, kMaxParameters> own_sizes_{};
  std::size_t own_parameters_ = 0;
  std::array<TensorMapRequest, 32> tensor_maps_{};
  std::size_t tensor_map_count_ = 0;
};

}  // namespace tilewright::plan
