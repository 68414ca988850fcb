// One launch as integers: what the runtime needs to start a planned kernel on given arguments.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "tilewright/base/error.hpp"

namespace tilewright::plan {

struct Launch {
  std::array<std::uint32_t, 3> grid{1, 1, 1};   // CTAs
  std::array<std::uint32_t, 3> block{1, 1, 1};  // threads
  std::uint32_t dynamic_smem_bytes = 0;

  /// The kernel's one by-value struct, laid out as C++ lays it out: each field at a multiple of its size.
  std::span<const std::byte> parameters() const { return {parameter_bytes_.data(), parameter_size_}; }

  /// Appends a field. The kernel's struct must list the same types in the same order.
  template <class T>
  void append(const T& value) {
    const std::size_t at = (parameter_size_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    TILEWRIGHT_CHECK(at + sizeof(T) <= parameter_bytes_.size(), "kernel parameters exceed {} bytes",
                     parameter_bytes_.size());
    std::memcpy(parameter_bytes_.data() + at, &value, sizeof(T));
    parameter_size_ = at + sizeof(T);
  }

  /// Rounds the struct's size up to its alignment, as C++ does.
  void finish(std::size_t alignment = 8) {
    parameter_size_ = (parameter_size_ + alignment - 1) / alignment * alignment;
  }

 private:
  std::array<std::byte, 256> parameter_bytes_{};
  std::size_t parameter_size_ = 0;
};

}  // namespace tilewright::plan
