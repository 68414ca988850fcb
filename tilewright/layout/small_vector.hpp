// A vector with inline storage: most layouts have few modes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <vector>

namespace tilewright::layout {

/// A subset of std::vector that stores up to kInline elements in the object itself.
template <class T, std::size_t kInline>
requires std::is_trivially_copyable_v<T>
class SmallVector {
 public:
  SmallVector() {}  // NOLINT: leaves the inline elements uninitialised
  SmallVector(std::initializer_list<T> elements) : SmallVector() {
    for (const T& element : elements) push_back(element);
  }
  SmallVector(const SmallVector& other) : SmallVector() { *this = other; }
  SmallVector& operator=(const SmallVector& other) {
    if (this == &other) return *this;
    heap_ = other.heap_;
    size_ = other.size_;
    if (heap_.empty()) std::uninitialized_copy(other.begin(), other.end(), inline_);
    return *this;
  }
  ~SmallVector() {}  // NOLINT: elements are trivially copyable

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* begin() const { return heap_.empty() ? inline_ : heap_.data(); }
  const T* end() const { return begin() + size_; }
  T* begin() { return heap_.empty() ? inline_ : heap_.data(); }
  T* end() { return begin() + size_; }
  /// @pre i < size()
  const T& operator[](std::size_t i) const { return begin()[i]; }
  T& operator[](std::size_t i) { return begin()[i]; }
  /// @pre not empty
  const T& back() const { return begin()[size_ - 1]; }
  T& back() { return begin()[size_ - 1]; }

  void push_back(T value) {
    if (size_ >= kInline) grow();
    std::construct_at(begin() + size_++, value);
  }
  void clear() { size_ = 0; }
  /// @pre `at` is an element
  void erase(const T* at) {
    std::copy(at + 1, static_cast<const T*>(end()), begin() + (at - begin()));
    --size_;
  }
  /// Keeps the first `count` elements. @pre count <= size()
  void truncate(std::size_t count) { size_ = count; }

 private:
  void grow() {
    if (heap_.empty()) heap_.assign(begin(), end());
    if (heap_.size() == size_) heap_.resize(2 * size_);
  }

  std::size_t size_ = 0;
  std::vector<T> heap_;  // all elements, once there were more than kInline
  union {
    T inline_[kInline];  // NOLINT: the first size() elements are initialised while heap_ is empty
  };
};

/// Removes the elements for which the predicate holds, keeping the order of the others.
template <class T, std::size_t kInline, class Predicate>
void erase_if(SmallVector<T, kInline>& vector, Predicate&& predicate) {
  const T* kept = std::remove_if(vector.begin(), vector.end(), predicate);
  vector.truncate(static_cast<std::size_t>(kept - vector.begin()));
}

}  // namespace tilewright::layout
