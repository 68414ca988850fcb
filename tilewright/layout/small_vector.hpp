// A vector with inline storage: most layouts have few modes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <type_traits>
#include <vector>

namespace tilewright::layout {

/// A subset of std::vector that stores up to kInline elements in the object itself.
template <class T, std::size_t kInline>
requires std::is_trivially_copyable_v<T>
class SmallVector {
 public:
  SmallVector() = default;
  SmallVector(std::initializer_list<T> elements) {
    for (const T& element : elements) push_back(element);
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* begin() const { return heap_.empty() ? inline_.data() : heap_.data(); }
  const T* end() const { return begin() + size_; }
  T* begin() { return heap_.empty() ? inline_.data() : heap_.data(); }
  T* end() { return begin() + size_; }
  /// @pre i < size()
  const T& operator[](std::size_t i) const { return begin()[i]; }
  T& operator[](std::size_t i) { return begin()[i]; }
  /// @pre not empty
  const T& back() const { return begin()[size_ - 1]; }
  T& back() { return begin()[size_ - 1]; }

  void push_back(T value) {
    if (size_ >= kInline) grow();
    begin()[size_++] = value;
  }
  void clear() { size_ = 0; }
  /// Keeps the first `count` elements. @pre count <= size()
  void truncate(std::size_t count) { size_ = count; }

 private:
  void grow() {
    if (heap_.empty()) heap_.assign(begin(), end());
    if (heap_.size() == size_) heap_.resize(2 * size_);
  }

  std::size_t size_ = 0;
  std::vector<T> heap_;  // all elements, once there were more than kInline
  std::array<T, kInline> inline_{};
};

/// Removes the elements for which the predicate holds, keeping the order of the others.
template <class T, std::size_t kInline, class Predicate>
void erase_if(SmallVector<T, kInline>& vector, Predicate&& predicate) {
  const T* kept = std::remove_if(vector.begin(), vector.end(), predicate);
  vector.truncate(static_cast<std::size_t>(kept - vector.begin()));
}

}  // namespace tilewright::layout
