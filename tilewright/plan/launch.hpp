// One launch as integers: what the runtime needs to start a planned kernel on given arguments.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "tilewright/base/dtype.hpp"
#include "tilewright/base/error.hpp"

namespace tilewright::plan {

/// A matrix, or a batch of them, that the kernel reaches by TMA. The device encodes it: it knows the opaque form.
struct TensorMapRequest {
  DType element{};  // tf32: f32 in memory, rounded on the way in
  std::uint64_t address = 0;
  bool is_in_workspace = false;                  // the address counts from the workspace's beginning
  std::array<std::int64_t, 3> extents{1, 1, 1};  // contiguous, strided, batch; elements
  std::array<std::int64_t, 2> strides{};         // of the strided mode and of the batch; bytes
  std::array<std::int64_t, 3> box{1, 1, 1};      // elements
  int swizzle_bytes = 16;                        // width of the pattern: 16 (none), 32, 64 or 128
  std::size_t parameter_offset = 0;              // where the kernel expects the encoded map
};

inline constexpr std::size_t kTensorMapBytes = 128;
inline constexpr std::size_t kTensorMapAlignment = 64;

/// A workspace begins with counters: those of barriers, which every kernel leaves as pipeline/grid_barrier.cuh says, so
/// that the next one can use them; then those of reductions, zeros between launches; then that of the barrier of all.
inline constexpr std::size_t kReductionCountersFrom = 8192;
inline constexpr std::size_t kReductionCounterBytes = 253920;
inline constexpr std::size_t kWorkspaceCounterBytes = kReductionCountersFrom + kReductionCounterBytes + 32;

/// Of one launch's workspace: more is refused.
inline constexpr std::int64_t kMaxWorkspaceBytes = std::int64_t{4} << 30;

/// Memory that a kernel without counters wants for one launch.
struct Scratch {
  std::size_t bytes = 0;
  std::size_t alignment = 256;    // a power of two
  std::size_t leading_zeros = 0;  // bytes that are zeros whenever the kernel starts; the rest may hold anything
};

/// What one launch's workspace must be.
struct WorkspaceNeeds {
  std::size_t bytes = 0;
  std::size_t begin = 0;          // of what the kernel is given, rounded up to
  std::size_t alignment = 1;      // this
  std::size_t leading_zeros = 0;  // bytes from there

  /// What the kernel is given of a workspace at `address`.
  std::uint64_t given(std::uint64_t address) const { return (address + begin + alignment - 1) / alignment * alignment; }
};

struct Launch {
  std::array<std::uint32_t, 3> grid{1, 1, 1};     // CTAs
  std::array<std::uint32_t, 3> block{1, 1, 1};    // threads
  std::array<std::uint32_t, 3> cluster{1, 1, 1};  // CTAs
  std::uint32_t dynamic_smem_bytes = 0;
  bool cooperative = false;  // CTAs wait for each other: all must be resident at once

  /// The kernel's one by-value struct, laid out as C++ lays it out: each field at a multiple of its alignment.
  std::span<const std::byte> parameters() const { return {parameter_bytes_.data(), parameter_size_}; }

  /// Appends a field. The kernel's struct must list the same types in the same order.
  template <class T>
  void append(const T& value) {
    std::memcpy(parameter_bytes_.data() + reserve(sizeof(T), alignof(T)), &value, sizeof(T));
  }

  /// Where the last field that was appended begins, in parameters().
  std::size_t last_offset() const { return last_offset_; }

  /// Appends bytes, at a multiple of the largest power of two up to 8 that divides their number.
  void append(std::span<const std::byte> bytes) {
    const std::size_t alignment = std::min<std::size_t>(8, bytes.size() & (~bytes.size() + 1));
    std::memcpy(parameter_bytes_.data() + reserve(bytes.size(), std::max<std::size_t>(1, alignment)), bytes.data(),
                bytes.size());
  }

  /// Appends a parameter of its own, for a kernel(const double* a, double* d, int m): all of one kernel's are, or none.
  /// Takes what append() takes. @throws InvalidArgument beyond kMaxParameters
  template <class T>
  void append_parameter(const T& value) {
    if (own_parameters_ == own_offsets_.size()) {
      throw InvalidArgument(fmt::format("a kernel takes at most {} parameters of their own", own_offsets_.size()));
    }
    append(value);
    own_offsets_[own_parameters_] = static_cast<std::uint16_t>(last_offset_);
    own_sizes_[own_parameters_++] = static_cast<std::uint16_t>(parameter_size_ - last_offset_);
  }
  /// Where each of them lies in parameters(), and its bytes; empty: there is one, the struct.
  std::span<const std::uint16_t> parameter_offsets() const { return {own_offsets_.data(), own_parameters_}; }
  std::span<const std::uint16_t> parameter_sizes() const { return {own_sizes_.data(), own_parameters_}; }

  /// Appends a tensor map, whose bytes come later, by set_tensor_map.
  void append(TensorMapRequest request) {
    TILEWRIGHT_CHECK(tensor_map_count_ < tensor_maps_.size(), "a kernel takes at most {} tensor maps",
                     tensor_maps_.size());
    request.parameter_offset = reserve(kTensorMapBytes, kTensorMapAlignment);
    tensor_maps_[tensor_map_count_++] = request;
  }
  std::span<const TensorMapRequest> tensor_maps() const { return {tensor_maps_.data(), tensor_map_count_}; }
  void set_tensor_map(const TensorMapRequest& request, std::span<const std::byte, kTensorMapBytes> encoded) {
    std::memcpy(parameter_bytes_.data() + request.parameter_offset, encoded.data(), encoded.size());
  }

  /// Appends the address of device memory that only this launch uses while it runs, null where `bytes` is 0; it comes
  /// later, by set_workspace. The kernel finds there what another left, at first zeros; see kWorkspaceCounterBytes.
  /// @throws InvalidArgument for a second one
  void append_workspace(std::size_t bytes) { reserve_workspace({.bytes = bytes}); }
  /// The same for kernels that keep no counters: their memory lies behind the counters of the others.
  void append(const Scratch& scratch) {
    reserve_workspace({.bytes = scratch.bytes == 0 ? 0 : kWorkspaceCounterBytes + scratch.alignment + scratch.bytes,
                       .begin = kWorkspaceCounterBytes,
                       .alignment = scratch.alignment,
                       .leading_zeros = scratch.leading_zeros});
  }
  std::size_t workspace_bytes() const { return workspace_.bytes; }
  const WorkspaceNeeds& workspace() const { return workspace_; }
  /// @pre workspace_bytes() != 0
  void set_workspace(std::uint64_t address) {
    address = workspace_.given(address);
    std::memcpy(parameter_bytes_.data() + workspace_offset_, &address, sizeof address);
  }

  /// Ends the struct, or one within it: rounds the size up to its alignment, as C++ does.
  void finish(std::size_t alignment = 8) {
    parameter_size_ = (parameter_size_ + alignment - 1) / alignment * alignment;
  }

 private:
  static constexpr std::size_t kMaxParameters = 40;
  static constexpr std::size_t kNowhere = ~std::size_t{0};

  void reserve_workspace(const WorkspaceNeeds& needs) {
    if (workspace_offset_ != kNowhere) {
      throw InvalidArgument(fmt::format("a launch has one workspace: {} bytes are asked for besides", needs.bytes));
    }
    workspace_offset_ = reserve(sizeof(std::uint64_t), sizeof(std::uint64_t));
    workspace_ = needs;
  }

  std::size_t reserve(std::size_t bytes, std::size_t alignment) {
    const std::size_t at = (parameter_size_ + alignment - 1) / alignment * alignment;
    if (at + bytes > parameter_bytes_.size())
      throw InvalidArgument(fmt::format("kernel parameters exceed {} bytes", parameter_bytes_.size()));
    parameter_size_ = at + bytes;
    last_offset_ = at;
    return at;
  }

  alignas(kTensorMapAlignment) std::array<std::byte, 2048> parameter_bytes_{};
  std::size_t parameter_size_ = 0;
  std::size_t last_offset_ = 0;
  std::size_t workspace_offset_ = kNowhere;
  WorkspaceNeeds workspace_;
  std::array<std::uint16_t, kMaxParameters> own_offsets_{};
  std::array<std::uint16_t, kMaxParameters> own_sizes_{};
  std::size_t own_parameters_ = 0;
  std::array<TensorMapRequest, 6> tensor_maps_{};
  std::size_t tensor_map_count_ = 0;
};

}  // namespace tilewright::plan
