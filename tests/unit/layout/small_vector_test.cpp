// SmallVector with inline and heap storage, and the algebra on layouts with more modes than are stored inline.
#include "tilewright/layout/small_vector.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tilewright/layout/algebra.hpp"

namespace tilewright::layout {
namespace {

using Vector = SmallVector<int, 4>;

Vector counted(int count) {
  Vector result;
  for (int i = 0; i < count; ++i) result.push_back(i);
  return result;
}

std::vector<int> elements(const Vector& vector) { return {vector.begin(), vector.end()}; }

TEST(SmallVector, GrowsPastItsInlineStorage) {
  std::vector<int> expected;
  for (int count = 0; count < 40; ++count) {
    const Vector vector = counted(count);
    EXPECT_EQ(elements(vector), expected);
    EXPECT_EQ(vector.empty(), count == 0);
    if (count > 0) {
      EXPECT_EQ(vector.back(), count - 1);
    }
    expected.push_back(count);
  }
}

TEST(SmallVector, AppendsAnElementOfItself) {
  Vector vector{7};
  for (int i = 0; i < 20; ++i) vector.push_back(vector[0]);
  EXPECT_EQ(elements(vector), std::vector<int>(21, 7));
}

TEST(SmallVector, CopiesAreIndependent) {
  for (const int count : {3, 4, 5, 20}) {
    Vector original = counted(count);
    Vector copy = original;
    copy[0] = 100;
    copy.push_back(200);
    EXPECT_EQ(elements(original), elements(counted(count)));
    EXPECT_EQ(copy.size(), original.size() + 1);
    original = copy;
    EXPECT_EQ(elements(original), elements(copy));
  }
}

TEST(SmallVector, ShrinksAndGrowsAgain) {
  for (const int count : {4, 5, 20}) {
    Vector vector = counted(count);
    erase_if(vector, [](int element) { return element % 2 == 1; });
    ASSERT_EQ(vector.size(), static_cast<std::size_t>((count + 1) / 2));
    EXPECT_EQ(vector.back(), 2 * ((count - 1) / 2));
    vector.truncate(1);
    for (int i = 1; i < 30; ++i) vector.push_back(i);
    EXPECT_EQ(elements(vector), elements(counted(30)));
    vector.clear();
    EXPECT_TRUE(vector.empty());
  }
}

/// (2,2,...):(2^19,...,2,1): no modes merge.
Layout bits_reversed(int bits) {
  return make_row_major(IntTuple::tuple(std::vector<std::int64_t>(static_cast<std::size_t>(bits), 2)));
}

TEST(Algebra, WorksOnManyModes) {
  constexpr int kBits = 20;
  const Layout reversed = bits_reversed(kBits);
  EXPECT_EQ(coalesce(reversed), reversed);
  EXPECT_EQ(coalesce(composition(reversed, reversed)), Layout(1 << kBits, 1));
  EXPECT_EQ(right_inverse(reversed), reversed);
  EXPECT_EQ(left_inverse(reversed), reversed);
  EXPECT_EQ(size(complement(composition(reversed, Layout(1 << 10, 4)), 1 << kBits)), 1 << 10);
  const Layout divided = logical_divide(reversed, bits_reversed(10));
  for (const std::int64_t index : {0, 1, 1023, 1024, 77777}) {
    const std::int64_t tile = bits_reversed(10)(index % 1024);
    EXPECT_EQ(divided(index), reversed(tile + 1024 * (index / 1024)));
  }
}

}  // namespace
}  // namespace tilewright::layout
