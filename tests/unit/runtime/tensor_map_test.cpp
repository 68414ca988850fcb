// Checks of tensor maps, at each limit and one past it, and the arguments of cuTensorMapEncodeTiled.
#include "tilewright/runtime/tensor_map.hpp"

#include <gmock/gmock.h>

#include <functional>

#include "fixture.hpp"

namespace tilewright::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TensorMapDescription matrix() {
  TensorMapDescription d;
  d.type = TensorMapType::bf16;
  d.rank = 2;
  d.address = 0x7f0000001000;
  d.extents = {1000, 300};
  d.strides = {0, 2048};
  d.box = {64, 128};
  d.swizzle = TensorMapSwizzle::bytes_128;
  return d;
}

struct Rule {
  const char* name;
  std::function<void(TensorMapDescription&)> change;
  const char* refusal;  // empty: accepted
};

class CheckTensorMap : public testing::TestWithParam<Rule> {};

TEST_P(CheckTensorMap, AcceptsTheLimitAndRefusesPastIt) {
  TensorMapDescription d = matrix();
  GetParam().change(d);
  const Support support = check(d);
  EXPECT_EQ(static_cast<bool>(support), *GetParam().refusal == '\0') << support.reason();
  EXPECT_THAT(support.reason(), HasSubstr(GetParam().refusal));
}

using D = TensorMapDescription;

// Source of the limits: CUDA driver API, cuTensorMapEncodeTiled.
const Rule kRules[] = {
    {"as_it_is", [](D&) {}, ""},
    {"address_of_8", [](D& d) { d.address += 8; }, "16 bytes and not null, got 0x7f0000001008"},
    {"address_null", [](D& d) { d.address = 0; }, "got 0x0"},
    {"rank_0", [](D& d) { d.rank = 0; }, "1 to 5, got 0"},
    {"rank_6", [](D& d) { d.rank = 6; }, "1 to 5, got 6"},
    {"extent_0", [](D& d) { d.extents[1] = 0; }, "extent of mode 1 must be 1 to 2^32, got 0"},
    {"extent_most", [](D& d) { d.extents[1] = std::uint64_t{1} << 32; }, ""},
    {"extent_past", [](D& d) { d.extents[0] = (std::uint64_t{1} << 32) + 1; },
     "mode 0 must be 1 to 2^32, got 4294967297"},
    {"stride_of_8", [](D& d) { d.strides[1] = 2056; },
     "stride of mode 1 must be a multiple of 16 bytes below 2^40, got 2056"},
    {"stride_most", [](D& d) { d.strides[1] = (std::uint64_t{1} << 40) - 16; }, ""},
    {"stride_past", [](D& d) { d.strides[1] = std::uint64_t{1} << 40; }, "got 1099511627776"},
    {"stride_of_mode_0_is_ignored", [](D& d) { d.strides[0] = 3; }, ""},
    {"box_0", [](D& d) { d.box[1] = 0; }, "box of mode 1 must be 1 to 256, got 0"},
    {"box_most", [](D& d) { d.box[1] = 256; }, ""},
    {"box_past", [](D& d) { d.box[1] = 257; }, "got 257"},
    {"row_of_8_bytes", [](D& d) { d.box[0] = 4; }, "multiple of 16 bytes, got 4 of bf16 (8 bytes)"},
    {"row_wider_than_the_swizzle", [](D& d) { d.box[0] = 72; }, "128-byte swizzle, got 72 of bf16 (144 bytes)"},
    {"row_as_wide_as_64",
     [](D& d) {
       d.box[0] = 32;
       d.swizzle = TensorMapSwizzle::bytes_64;
     },
     ""},
    {"row_wider_than_32",
     [](D& d) {
       d.box[0] = 32;
       d.swizzle = TensorMapSwizzle::bytes_32;
     },
     "32-byte swizzle"},
    {"row_without_swizzle",
     [](D& d) {
       d.box[0] = 256;
       d.swizzle = TensorMapSwizzle::none;
     },
     ""},
    {"element_stride_0", [](D& d) { d.element_strides[1] = 0; }, "element stride of mode 1 must be 1 to 8, got 0"},
    {"element_stride_most", [](D& d) { d.element_strides[1] = 8; }, ""},
    {"element_stride_past", [](D& d) { d.element_strides[1] = 9; }, "got 9"},
    {"element_stride_of_mode_0", [](D& d) { d.element_strides[0] = 9; },
     "element stride of mode 0 must be 1 to 8, got 9"},
    {"stride_of_0", [](D& d) { d.strides[1] = 0; }, ""},
    {"nan_in_floats", [](D& d) { d.fill = TensorMapFill::nan; }, ""},
    {"nan_in_integers",
     [](D& d) {
       d.fill = TensorMapFill::nan;
       d.type = TensorMapType::u16;
     },
     "floating-point type, got u16"},
    {"unknown_type", [](D& d) { d.type = static_cast<TensorMapType>(13); }, "type 13"},
    {"modes_past_the_rank_are_ignored",
     [](D& d) {
       d.extents[2] = 0;
       d.strides[3] = 1;
     },
     ""},
};

INSTANTIATE_TEST_SUITE_P(Rules, CheckTensorMap, testing::ValuesIn(kRules),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(TensorMap, BytesOfABoxCountItsElementStrides) {
  TensorMapDescription d = matrix();
  EXPECT_EQ(box_bytes(d), 64U * 128 * 2);
  d.element_strides = {4, 3, 1, 1, 1};
  EXPECT_EQ(box_elements(d, 0), 64U);  // mode 0 has no stride
  EXPECT_EQ(box_elements(d, 1), 43U);
  EXPECT_EQ(box_bytes(d), 64U * 43 * 2);
  EXPECT_EQ(footprint(d), 299U * 2048 + 2000);
}

class EncodeTensorMap : public FakeDriverTest {
 protected:
  std::shared_ptr<CudaDevice> device_ = open_cuda_device(0, {}, kFakeDriver);
};

TEST_F(EncodeTensorMap, PassesTheDescription) {
  TensorMapDescription d = matrix();
  d.rank = 3;
  d.extents[2] = 7;
  d.strides[2] = 1 << 20;
  d.box[2] = 2;
  d.element_strides[1] = 2;
  d.fill = TensorMapFill::nan;
  const TensorMap map = device_->encode(d);
  ASSERT_EQ(state_->tensor_maps.size(), 1U);
  const fake_driver::TensorMap& asked = state_->tensor_maps[0];
  EXPECT_EQ(asked.type, 9);  // CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
  EXPECT_EQ(asked.address, d.address);
  EXPECT_THAT(asked.extents, ElementsAre(1000, 300, 7));
  EXPECT_THAT(asked.strides, ElementsAre(2048, 1 << 20));
  EXPECT_THAT(asked.box, ElementsAre(64, 128, 2));
  EXPECT_THAT(asked.element_strides, ElementsAre(1, 2, 1));
  EXPECT_EQ(asked.interleave, 0);
  EXPECT_EQ(asked.swizzle, 3);
  EXPECT_EQ(asked.promotion, 2);
  EXPECT_EQ(asked.fill, 1);
  for (const std::byte b : map.bytes) EXPECT_EQ(b, std::byte{0xff});  // the map of a large tensor is not changed
}

TEST_F(EncodeTensorMap, ClearsTheBitOfSmallTensorsOnOldDrivers) {
  TensorMapDescription d = matrix();
  d.extents = {1000, 63};  // 62 * 2048 + 2000 bytes: below 131072
  EXPECT_EQ(device_->encode(d).bytes[10], std::byte{0xdf});
  state_->version = 13020;
  EXPECT_EQ(device_->encode(d).bytes[10], std::byte{0xff});
  state_->version = 13010;
  d.extents = {1024, 64};  // 131072 bytes
  EXPECT_EQ(device_->encode(d).bytes[10], std::byte{0xff});
}

TEST_F(EncodeTensorMap, RefusesDriversThatDoNotReportParameterSizes) {
  state_->failures["find cuKernelGetParamInfo"] = 1;
  const std::shared_ptr<CudaDevice> old = open_cuda_device(0, {}, kFakeDriver);
  EXPECT_THAT(message_of<InvalidArgument>([&] { old->encode(matrix()); }), HasSubstr("CUDA 12.4"));
  EXPECT_EQ(calls("cuTensorMapEncodeTiled"), 0);
}

TEST_F(EncodeTensorMap, RefusedDescriptionsAreNotPassedToTheDriver) {
  TensorMapDescription d = matrix();
  d.box[1] = 257;
  EXPECT_THAT(message_of<InvalidArgument>([&] { device_->encode(d); }), HasSubstr("got 257"));
  EXPECT_EQ(calls("cuTensorMapEncodeTiled"), 0);
  state_->failures["cuTensorMapEncodeTiled"] = 1;
  EXPECT_THROW(device_->encode(matrix()), DriverError);
}

}  // namespace
}  // namespace tilewright::runtime
