// The rules of tensor maps at each limit and one past it, their types and swizzles, and the sizes of boxes.
#include "tilewright/base/tensor_map.hpp"

#include <gmock/gmock.h>

#include "tests/unit/base/tensor_map_rules.hpp"

namespace tilewright {
namespace {

using testing::HasSubstr;

class CheckTensorMap : public testing::TestWithParam<TensorMapRule> {};

TEST_P(CheckTensorMap, AcceptsTheLimitAndRefusesPastIt) {
  const TensorMapRule& rule = GetParam();
  const Support support = check(rule.map);
  EXPECT_EQ(static_cast<bool>(support), rule.refusal.empty()) << support.reason();
  EXPECT_THAT(support.reason(), HasSubstr(rule.refusal));
}

INSTANTIATE_TEST_SUITE_P(Rules, CheckTensorMap, testing::ValuesIn(tensor_map_rules()),
                         [](const auto& test) { return test.param.name; });

TEST(TensorMap, ADefaultOneIsRefused) { EXPECT_FALSE(check(TensorMap{})); }

TEST(TensorMap, EnumeratorsHaveTheValuesOfCudaH) {
  EXPECT_EQ(static_cast<int>(TensorMapType::u8), 0);
  EXPECT_EQ(static_cast<int>(TensorMapType::f16), 6);
  EXPECT_EQ(static_cast<int>(TensorMapType::bf16), 9);
  EXPECT_EQ(static_cast<int>(TensorMapType::tf32_ftz), 12);
  EXPECT_EQ(static_cast<int>(TensorMapSwizzle::bytes_32), 1);
  EXPECT_EQ(static_cast<int>(TensorMapSwizzle::bytes_128), 3);
  EXPECT_EQ(static_cast<int>(TensorMapPromotion::bytes_256), 3);
  EXPECT_EQ(static_cast<int>(TensorMapFill::nan), 1);
}

TEST(TensorMap, SwizzlesHaveWidths) {
  using enum TensorMapSwizzle;
  for (const TensorMapSwizzle swizzle : {none, bytes_32, bytes_64, bytes_128}) {
    EXPECT_EQ(swizzle_of_width(width(swizzle)), swizzle);
  }
  EXPECT_EQ(width(none), 0);
  EXPECT_EQ(width(bytes_64), 64);
  EXPECT_EQ(swizzle_of_width(16), none) << "rows of 16 bytes have one chunk";
}

TEST(TensorMap, TypesOfElements) {
  for (const DType element : {DType::f64, DType::f32, DType::tf32, DType::f16, DType::bf16, DType::s32, DType::u8}) {
    const TensorMapType type = tensor_map_type(element).value_or_throw();
    EXPECT_EQ(name(type), name(element));
    EXPECT_EQ(bytes(type), bytes(element));
    EXPECT_EQ(is_float(type), is_float(element));
  }
  for (const DType element : {DType::s8, DType::e4m3, DType::e5m2}) {
    EXPECT_EQ(*tensor_map_type(element), TensorMapType::u8);
  }
  EXPECT_EQ(tensor_map_type(DType::s4).reason(), "TMA copies elements of 8, 16, 32 or 64 bits, got s4 of 4");
  EXPECT_FALSE(tensor_map_type(DType::u4));
  EXPECT_FALSE(tensor_map_type(DType::b1));
}

TEST(TensorMap, BytesOfABoxCountItsElementStrides) {
  TensorMap map = matrix_map();
  EXPECT_EQ(box_bytes(map), 64U * 128 * 2);
  map.element_strides = {4, 3, 1, 1, 1};
  EXPECT_EQ(box_elements(map, 0), 64U);  // mode 0 has no stride
  EXPECT_EQ(box_elements(map, 1), 43U);
  EXPECT_EQ(box_bytes(map), 64U * 43 * 2);
  EXPECT_EQ(footprint(map), 299U * 2048 + 2000);
}

TEST(TensorMap, BytesOfAnIm2colCopyAreItsPixels) {
  TensorMap map = image_map();
  EXPECT_EQ(box_bytes(map), 128U * 64 * 2);
  map.element_strides = {1, 2, 2, 1, 1};
  EXPECT_EQ(box_bytes(map), 128U * 64 * 2) << "strides skip pixels, they do not copy fewer";
  EXPECT_EQ(footprint(map), 32U * 40 * 56 * 256);
}

}  // namespace
}  // namespace tilewright
