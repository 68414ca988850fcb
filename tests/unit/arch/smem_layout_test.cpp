// Swizzles for shared memory have no bank conflicts for their access patterns, and the bank model counts conflicts.
#include "tilewright/arch/smem_layout.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/print.hpp"

namespace tilewright::arch {
namespace {

using layout::Swizzle;

std::vector<std::int64_t> lanes(int count, const std::function<std::int64_t(std::int64_t)>& offset) {
  std::vector<std::int64_t> offsets;
  for (std::int64_t lane = 0; lane < count; ++lane) offsets.push_back(offset(lane));
  return offsets;
}

TEST(BankModel, CountsWavefronts) {
  EXPECT_EQ(smem_wavefronts(lanes(32, [](auto lane) { return 4 * lane; }), 4), 1);
  EXPECT_EQ(smem_wavefronts(lanes(32, [](auto lane) { return 8 * lane; }), 4), 2);
  EXPECT_EQ(smem_wavefronts(lanes(32, [](auto lane) { return 128 * lane; }), 4), 32);
  EXPECT_EQ(smem_wavefronts(lanes(32, [](auto) { return 64; }), 4), 1) << "all lanes read one word";
  EXPECT_EQ(smem_wavefronts(lanes(32, [](auto lane) { return lane; }), 1), 1);
  EXPECT_EQ(smem_wavefronts(lanes(32, [](auto lane) { return 8 * lane; }), 8), 2) << "half warps";
  EXPECT_EQ(smem_wavefronts(lanes(32, [](auto lane) { return 16 * lane; }), 16), 4) << "quarter warps";
  EXPECT_EQ(smem_wavefronts(lanes(32, [](auto lane) { return 16 * lane; }), 8), 4);
  EXPECT_EQ(smem_wavefronts(lanes(8, [](auto lane) { return 128 * lane; }), 16), 8);
  EXPECT_EQ(bank_conflicts(lanes(32, [](auto lane) { return 16 * lane; }), 16), 0);
  EXPECT_EQ(bank_conflicts(lanes(32, [](auto lane) { return 128 * lane; }), 4), 31);
  EXPECT_EQ(bank_conflicts(lanes(8, [](auto lane) { return 128 * lane; }), 16), 7);
}

TEST(BankModel, RefusesInvalidAccesses) {
  EXPECT_THROW(smem_wavefronts(lanes(33, [](auto lane) { return 4 * lane; }), 4), InvalidArgument);
  EXPECT_THROW(smem_wavefronts(lanes(32, [](auto lane) { return 4 * lane + 2; }), 4), InvalidArgument);
  EXPECT_THROW(smem_wavefronts(lanes(32, [](auto lane) { return -4 * lane; }), 4), InvalidArgument);
  EXPECT_THROW(smem_wavefronts(lanes(1, [](auto) { return 0; }), 3), InvalidArgument);
  EXPECT_THROW(smem_wavefronts(lanes(1, [](auto) { return 0; }), 0), InvalidArgument);
}

TEST(SwizzleFor, Rows) {
  using enum SmemAccess;
  EXPECT_EQ(*swizzle_for(128, rows_of_16_bytes), Swizzle(3, 4, 3));
  EXPECT_EQ(*swizzle_for(64, rows_of_16_bytes), Swizzle(2, 4, 3));
  EXPECT_EQ(*swizzle_for(32, rows_of_16_bytes), Swizzle(1, 4, 3));
  EXPECT_EQ(*swizzle_for(16, rows_of_16_bytes), Swizzle(0, 4, 3));
  EXPECT_EQ(*swizzle_for(128, rows_of_32_bytes), Swizzle(2, 5, 2));
  EXPECT_EQ(*swizzle_for(64, rows_of_32_bytes), Swizzle(1, 5, 2));
  EXPECT_EQ(*swizzle_for(32, rows_of_32_bytes), Swizzle(0, 5, 2));
}

TEST(SwizzleFor, RefusesOtherRows) {
  EXPECT_EQ(swizzle_for(96, SmemAccess::rows_of_16_bytes).reason(),
            "rows of a panel must be a power of two from 16 to 128 bytes, got 96");
  EXPECT_FALSE(swizzle_for(256, SmemAccess::rows_of_16_bytes));
  EXPECT_FALSE(swizzle_for(16, SmemAccess::rows_of_32_bytes));
  EXPECT_FALSE(swizzle_for(0, SmemAccess::rows_of_16_bytes));
}

/// A panel with its swizzle, for every row width that an access pattern allows.
class Panels : public testing::TestWithParam<int> {
 protected:
  std::int64_t row_bytes() const { return GetParam(); }
  Swizzle swizzle(SmemAccess access) const { return *swizzle_for(GetParam(), access); }

  /// Expects no conflict if each lane reads `bytes` at (row(lane), byte_in_row(lane)), from every aligned start in 16
  /// rows.
  template <class Row, class Byte>
  void expect_conflict_free(SmemAccess access, int bytes, int rows, int width, Row&& row, Byte&& byte_in_row) const {
    const Swizzle s = swizzle(access);
    for (std::int64_t first_row = 0; first_row < 16; first_row += rows) {
      for (std::int64_t first_byte = 0; first_byte < row_bytes(); first_byte += width) {
        const auto offsets = lanes(32, [&](std::int64_t lane) {
          return s((first_row + row(lane)) * row_bytes() + first_byte + byte_in_row(lane));
        });
        EXPECT_EQ(bank_conflicts(offsets, bytes), 0) << s << " row " << first_row << " byte " << first_byte;
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(RowBytes, Panels, testing::Values(32, 64, 128));

TEST_P(Panels, LdmatrixOfEightRows) {
  const Swizzle s = swizzle(SmemAccess::rows_of_16_bytes);
  for (std::int64_t first_row = 0; first_row < 64; first_row += 8) {
    for (std::int64_t byte = 0; byte < row_bytes(); byte += 16) {
      const auto rows = lanes(8, [&](std::int64_t lane) { return s((first_row + lane) * row_bytes() + byte); });
      EXPECT_EQ(bank_conflicts(rows, 16), 0) << "row " << first_row << " byte " << byte;
    }
  }
}

// ldmatrix.x4.trans of an MN-major A: two adjacent matrices along m, for two steps of k.
TEST_P(Panels, LdmatrixTransOfMnMajorRows) {
  const Swizzle s = swizzle(SmemAccess::rows_of_16_bytes);
  for (std::int64_t m = 0; m < row_bytes() / 2; m += 16) {
    const auto rows = lanes(32, [&](std::int64_t lane) {
      const std::int64_t k = lane % 8 + 8 * (lane / 16);
      return s(k * row_bytes() + 2 * (m + 8 * (lane / 8 % 2)));
    });
    EXPECT_EQ(bank_conflicts(rows, 16), 0) << "m " << m;
  }
}

TEST_P(Panels, FourByteFragmentsKMajor) {
  expect_conflict_free(
      SmemAccess::rows_of_16_bytes, 4, 8, 16, [](auto lane) { return lane / 4; },
      [](auto lane) { return lane % 4 * 4; });
}

// tf32 m16n8k8: registers of A and B are k = lane % 4 (and 4 more), m or n = lane / 4 (and 8 more).
TEST_P(Panels, FourByteFragmentsMnMajor) {
  expect_conflict_free(
      SmemAccess::rows_of_32_bytes, 4, 4, 32, [](auto lane) { return lane % 4; },
      [](auto lane) { return lane / 4 * 4; });
}

TEST_P(Panels, EightByteFragmentsKMajor) {
  expect_conflict_free(
      SmemAccess::rows_of_32_bytes, 8, 8, 32, [](auto lane) { return lane / 4; },
      [](auto lane) { return lane % 4 * 8; });
}

// Eight 8-byte elements need rows of at least 64 bytes.
class WidePanels : public Panels {};
INSTANTIATE_TEST_SUITE_P(RowBytes, WidePanels, testing::Values(64, 128));

TEST_P(WidePanels, EightByteFragmentsMnMajor) {
  expect_conflict_free(
      SmemAccess::rows_of_32_bytes, 8, 4, 64, [](auto lane) { return lane % 4; },
      [](auto lane) { return lane / 4 * 8; });
}

TEST_P(Panels, SixteenByteCopiesHaveNoConflicts) {
  for (const SmemAccess access : {SmemAccess::rows_of_16_bytes, SmemAccess::rows_of_32_bytes}) {
    const Swizzle s = swizzle(access);
    for (std::int64_t base = 0; base < 4096; base += 512)
      EXPECT_EQ(bank_conflicts(lanes(32, [&](std::int64_t lane) { return s(base + 16 * lane); }), 16), 0) << s;
  }
}

TEST(Swizzles, AreNeeded) {
  const auto rows = lanes(8, [](std::int64_t lane) { return lane * 128; });
  EXPECT_EQ(bank_conflicts(rows, 16), 7);
  const auto fragment = [](const Swizzle& s) {
    return lanes(32, [&s](std::int64_t lane) { return s(lane % 4 * 128 + lane / 4 * 4); });
  };
  EXPECT_EQ(bank_conflicts(fragment(Swizzle()), 4), 3);
  EXPECT_EQ(bank_conflicts(fragment(Swizzle(3, 4, 3)), 4), 1) << "chunks of 16 bytes are too small for rows of 32";
  EXPECT_EQ(bank_conflicts(fragment(Swizzle(2, 5, 2)), 4), 0);
}

TEST(SwizzleFor, RefusesRowsThatAreNoLineOfTheBanks) {
  EXPECT_EQ(swizzle_for(256, SmemAccess::rows_of_16_bytes).reason(),
            "rows of a panel must be a power of two from 16 to 128 bytes, got 256");
  EXPECT_EQ(swizzle_for(16, SmemAccess::rows_of_32_bytes).reason(),
            "rows of a panel must be a power of two from 32 to 128 bytes, got 16");
}

}  // namespace
}  // namespace tilewright::arch
