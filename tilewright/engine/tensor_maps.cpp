#include "tilewright/engine/tensor_maps.hpp"

#include "tilewright/base/error.hpp"

namespace tilewright::engine {
namespace {

runtime::TensorMapType type_of(DType element) {
  using runtime::TensorMapType;
  switch (element) {
    case DType::f32:
      return TensorMapType::f32;
    case DType::tf32:
      return TensorMapType::tf32;
    case DType::f16:
      return TensorMapType::f16;
    case DType::bf16:
      return TensorMapType::bf16;
    case DType::s32:
      return TensorMapType::s32;
    case DType::s8:
    case DType::u8:
    case DType::e4m3:
    case DType::e5m2:
      return TensorMapType::u8;
    default:
      TILEWRIGHT_CHECK(false, "tensor maps do not support {}", name(element));
  }
}

runtime::TensorMapSwizzle swizzle_of(int bytes) {
  using runtime::TensorMapSwizzle;
  return bytes == 128  ? TensorMapSwizzle::bytes_128
         : bytes == 64 ? TensorMapSwizzle::bytes_64
         : bytes == 32 ? TensorMapSwizzle::bytes_32
                       : TensorMapSwizzle::none;
}

runtime::TensorMapDescription describe(const plan::TensorMapRequest& request) {
  runtime::TensorMapDescription map;
  map.type = type_of(request.element);
  map.rank = static_cast<int>(request.extents.size());
  map.address = request.address;
  for (std::size_t i = 0; i < request.extents.size(); ++i) {
    map.extents[i] = static_cast<std::uint64_t>(request.extents[i]);
    map.box[i] = static_cast<std::uint32_t>(request.box[i]);
    if (i > 0) map.strides[i] = static_cast<std::uint64_t>(request.strides[i - 1]);
  }
  map.swizzle = swizzle_of(request.swizzle_bytes);
  map.promotion = runtime::TensorMapPromotion::bytes_256;
  return map;
}

}  // namespace

void encode_tensor_maps(runtime::Device& device, plan::Launch& launch) {
  for (const plan::TensorMapRequest& request : launch.tensor_maps()) {
    if (!request.is_in_workspace) launch.set_tensor_map(request, device.encode(describe(request)).bytes);
  }
}

void set_workspace(runtime::Device& device, plan::Launch& launch, runtime::DeviceAddress address) {
  launch.set_workspace(address);
  for (const plan::TensorMapRequest& request : launch.tensor_maps()) {
    if (!request.is_in_workspace) continue;
    runtime::TensorMapDescription map = describe(request);
    map.address += address;
    launch.set_tensor_map(request, device.encode(map).bytes);
  }
}

}  // namespace tilewright::engine
