// The arguments of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col, and what is refused before they are called.
#include "tilewright/runtime/encode_tensor_map.hpp"

#include <gmock/gmock.h>

#include "fixture.hpp"
#include "tests/unit/base/tensor_map_rules.hpp"

namespace tilewright::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class EncodeTensorMap : public FakeDriverTest {
 protected:
  std::shared_ptr<CudaDevice> device_ = open_cuda_device(0, {}, kFakeDriver);
};

TEST_F(EncodeTensorMap, PassesTheBox) {
  TensorMap d = matrix_map();
  d.rank = 3;
  d.extents[2] = 7;
  d.strides[2] = 1 << 20;
  d.box[2] = 2;
  d.element_strides[1] = 2;
  d.fill = TensorMapFill::nan;
  const EncodedTensorMap map = device_->encode(d);
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

TEST_F(EncodeTensorMap, PassesThePixelsOfIm2col) {
  TensorMap d = image_map();
  d.element_strides = {1, 2, 3, 1, 1};
  d.im2col->lower_corner = {-3, -4, 0};
  d.im2col->upper_corner = {-5, -6, 0};
  d.promotion = TensorMapPromotion::bytes_256;
  const EncodedTensorMap map = device_->encode(d);
  EXPECT_EQ(calls("cuTensorMapEncodeTiled"), 0);
  ASSERT_EQ(state_->tensor_maps.size(), 1U);
  const fake_driver::TensorMap& asked = state_->tensor_maps[0];
  EXPECT_EQ(asked.type, 9);
  EXPECT_EQ(asked.address, d.address);
  EXPECT_THAT(asked.extents, ElementsAre(128, 56, 40, 32));
  EXPECT_THAT(asked.strides, ElementsAre(256, 56 * 256, 40 * 56 * 256));
  EXPECT_THAT(asked.lower_corner, ElementsAre(-3, -4));
  EXPECT_THAT(asked.upper_corner, ElementsAre(-5, -6));
  EXPECT_EQ(asked.channels_per_pixel, 64U);
  EXPECT_EQ(asked.pixels_per_column, 128U);
  EXPECT_THAT(asked.element_strides, ElementsAre(1, 2, 3, 1));
  EXPECT_EQ(asked.interleave, 0);
  EXPECT_EQ(asked.swizzle, 3);
  EXPECT_EQ(asked.promotion, 3);
  EXPECT_EQ(asked.fill, 0);
  EXPECT_EQ(map.bytes[10], std::byte{0xff});
}

// encode() checks before it calls the driver; here the driver is called with what check() refuses.
TEST_F(EncodeTensorMap, TheDriverHasTheSameRules) {
  const CudaContext context(std::make_shared<Driver>(kFakeDriver), 0);
  const ContextScope scope(context);
  for (const TensorMapRule& rule : tensor_map_rules()) {
    const bool is_refused = !rule.refusal.empty() && rule.is_of_the_driver;
    if (is_refused) {
      EXPECT_THROW(encode_tensor_map(context.driver(), rule.map), DriverError) << rule.name;
    } else if (rule.refusal.empty()) {
      EXPECT_NO_THROW(encode_tensor_map(context.driver(), rule.map)) << rule.name;
    }
  }
}

TEST_F(EncodeTensorMap, ClearsTheBitOfSmallTensorsOnOldDrivers) {
  TensorMap d = matrix_map();
  d.extents = {1000, 63};  // 62 * 2048 + 2000 bytes: below 131072
  EXPECT_EQ(device_->encode(d).bytes[10], std::byte{0xdf});
  state_->version = 13020;
  EXPECT_EQ(device_->encode(d).bytes[10], std::byte{0xff});
  state_->version = 13010;
  d.extents = {1024, 64};  // 131072 bytes
  EXPECT_EQ(device_->encode(d).bytes[10], std::byte{0xff});
  TensorMap image = image_map(1);
  image.extents[2] = 2;  // 2 * 56 * 256 bytes
  EXPECT_EQ(device_->encode(image).bytes[10], std::byte{0xdf});
}

TEST_F(EncodeTensorMap, RefusesDriversThatDoNotReportParameterSizes) {
  state_->failures["find cuKernelGetParamInfo"] = 1;
  const std::shared_ptr<CudaDevice> old = open_cuda_device(0, {}, kFakeDriver);
  EXPECT_THAT(message_of<InvalidArgument>([&] { old->encode(matrix_map()); }), HasSubstr("CUDA 12.4"));
  EXPECT_EQ(calls("cuTensorMapEncodeTiled"), 0);
}

TEST_F(EncodeTensorMap, RefusedMapsAreNotPassedToTheDriver) {
  TensorMap d = matrix_map();
  d.box[1] = 257;
  EXPECT_THAT(message_of<InvalidArgument>([&] { device_->encode(d); }), HasSubstr("got 257"));
  d = matrix_map();
  d.address = 0;
  EXPECT_THAT(message_of<InvalidArgument>([&] { device_->encode(d); }), HasSubstr("must not be null, got 0x0"));
  TensorMap image = image_map();
  image.im2col->pixels_per_column = 1025;
  EXPECT_THAT(message_of<InvalidArgument>([&] { device_->encode(image); }), HasSubstr("got 1025"));
  EXPECT_EQ(calls("cuTensorMapEncodeTiled"), 0);
  EXPECT_EQ(calls("cuTensorMapEncodeIm2col"), 0);
  state_->failures["cuTensorMapEncodeTiled"] = 1;
  EXPECT_THROW(device_->encode(matrix_map()), DriverError);
  state_->failures["cuTensorMapEncodeIm2col"] = 1;
  EXPECT_THROW(device_->encode(image_map()), DriverError);
}

}  // namespace
}  // namespace tilewright::runtime
