// Basis elements of coordinates, which are also the paths to the modes of a tree.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace tilewright::layout {

/// CuTe's E<0,1>, written @1@0: mode 1 of mode 0. The empty basis is the unit of the integers; as a path it is the
/// whole tree.
class alignas(std::uint64_t) Basis {
 public:
  static constexpr int kMaxDepth = 7;

  constexpr Basis() = default;
  /// Outermost mode first. @throws InvalidArgument for more than kMaxDepth modes, or unless 0 <= mode < 128
  Basis(std::initializer_list<int> path);

  constexpr bool empty() const { return *this == Basis(); }
  constexpr int depth() const { return depth_; }
  /// @pre 0 <= i < depth()
  constexpr int operator[](int i) const { return modes_[static_cast<std::size_t>(i)]; }
  constexpr const std::int8_t* begin() const { return modes_.data(); }
  constexpr const std::int8_t* end() const { return modes_.data() + depth_; }

  /// The path extended by `mode`. @throws as the constructor does
  Basis child(int mode) const;
  /// Whether `other` begins with this path.
  bool is_prefix_of(const Basis& other) const;

  /// Compares all bytes at once: modes past the depth are 0.
  constexpr bool operator==(const Basis& other) const {
    return std::bit_cast<std::uint64_t>(*this) == std::bit_cast<std::uint64_t>(other);
  }

 private:
  std::array<std::int8_t, kMaxDepth> modes_{};
  std::int8_t depth_ = 0;
};

/// As CuTe prints it, innermost mode first: "@1@0"; "" for the empty basis.
std::string to_string(const Basis& basis);

}  // namespace tilewright::layout
