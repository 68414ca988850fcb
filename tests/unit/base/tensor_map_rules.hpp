// The rules of tensor maps: for each, a map at the limit and one past it. check() is tested with them, the fake driver,
// and the driver of a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tilewright/base/tensor_map.hpp"

namespace tilewright {

struct TensorMapRule {
  std::string name;
  TensorMap map;
  std::string refusal;           // a part of the reason why check() refuses the map; empty: accepted
  bool is_of_the_driver = true;  // false if the documentation of the driver does not say that it refuses the map
};

inline std::ostream& operator<<(std::ostream& out, const TensorMapRule& rule) { return out << rule.name; }

/// A matrix of 300 rows of 1000 elements, in boxes of 128 rows of 64.
inline TensorMap matrix_map() {
  TensorMap map;
  map.type = TensorMapType::bf16;
  map.rank = 2;
  map.address = 0x7f0000001000;
  map.extents = {1000, 300};
  map.strides = {0, 2048};
  map.box = {64, 128};
  map.swizzle = TensorMapSwizzle::bytes_128;
  return map;
}

/// Images of `spatial` modes of 56, 40 and 24 pixels with 128 channels, for a filter of 3 and a padding of 1.
inline TensorMap image_map(int spatial = 2) {
  constexpr std::uint64_t kPixels[] = {56, 40, 24};
  TensorMap map;
  map.type = TensorMapType::bf16;
  map.rank = spatial + 2;
  map.address = 0x7f0000001000;
  map.extents[0] = 128;
  std::uint64_t stride = 256;
  Im2colBox box{.channels_per_pixel = 64, .pixels_per_column = 128};
  for (std::size_t i = 0; i < static_cast<std::size_t>(spatial); ++i) {
    map.extents[i + 1] = kPixels[i];
    map.strides[i + 1] = stride;
    stride *= kPixels[i];
    box.lower_corner[i] = -1;
    box.upper_corner[i] = -1;
  }
  const auto last = static_cast<std::size_t>(spatial) + 1;
  map.extents[last] = 32;
  map.strides[last] = stride;
  map.swizzle = TensorMapSwizzle::bytes_128;
  map.im2col = box;
  return map;
}

// Source of the limits: CUDA driver API, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col.
inline std::vector<TensorMapRule> tensor_map_rules() {
  std::vector<TensorMapRule> rules;
  const auto add = [&](const TensorMap& from, std::string name, const std::function<void(TensorMap&)>& change,
                       std::string refusal, bool is_of_the_driver = true) {
    TensorMap map = from;
    change(map);
    rules.push_back({std::move(name), map, std::move(refusal), is_of_the_driver});
  };
  using M = TensorMap;
  constexpr bool kOurs = false;

  add(
      matrix_map(), "tiled_extent_of_mode_1_most", [](M& m) { m.extents[1] = std::uint64_t{1} << 32; }, "");
  add(
      image_map(), "im2col_end_most", [](M& m) { m.extents[1] = std::uint64_t{1} << 31; }, "");
  add(
      image_map(), "im2col_end_past", [](M& m) { m.extents[1] = (std::uint64_t{1} << 31) + 1; },
      "must end before 2^31 along mode 1, got 2147483648");

  // Rules of both modes.
  for (const bool is_im2col : {false, true}) {
    const auto both = [&](const std::string& name, const std::function<void(M&)>& change, std::string refusal,
                          bool is_of_the_driver = true) {
      add(is_im2col ? image_map() : matrix_map(), (is_im2col ? "im2col_" : "tiled_") + name, change, std::move(refusal),
          is_of_the_driver);
    };
    both(
        "as_it_is", [](M&) {}, "");
    both(
        "address_of_8", [](M& m) { m.address += 8; },
        "the address of a tensor map must be a multiple of 16 bytes, got 0x7f0000001008");
    both(
        "address_null", [](M& m) { m.address = 0; }, "");
    both(
        "rank_6", [](M& m) { m.rank = 6; }, "5 modes, got 6");
    both(
        "extent_0", [](M& m) { m.extents[1] = 0; }, "mode 1 of a tensor map must have an extent from 1 to 2^32, got 0");
    both(
        "extent_most", [](M& m) { m.extents[0] = std::uint64_t{1} << 32; }, "");
    both(
        "extent_past", [](M& m) { m.extents[0] = (std::uint64_t{1} << 32) + 1; },
        "mode 0 of a tensor map must have an extent from 1 to 2^32, got 4294967297");
    both(
        "stride_of_8", [](M& m) { m.strides[1] = 2056; },
        "the stride of mode 1 of a tensor map must be a multiple of 16 bytes, got 2056");
    both(
        "stride_most", [](M& m) { m.strides[1] = (std::uint64_t{1} << 40) - 16; }, "");
    both(
        "stride_past", [](M& m) { m.strides[1] = std::uint64_t{1} << 40; },
        "the stride of mode 1 of a tensor map must be below 2^40 bytes, got 1099511627776");
    both(
        "stride_of_0", [](M& m) { m.strides[1] = 0; }, "");
    both(
        "stride_of_mode_0_is_ignored", [](M& m) { m.strides[0] = 3; }, "");
    both(
        "element_stride_0", [](M& m) { m.element_strides[1] = 0; },
        "mode 1 of a tensor map must have an element stride from 1 to 8, got 0");
    both(
        "element_stride_most", [](M& m) { m.element_strides[1] = 8; }, "");
    both(
        "element_stride_past", [](M& m) { m.element_strides[1] = 9; },
        "mode 1 of a tensor map must have an element stride from 1 to 8, got 9");
    both(
        "element_stride_of_mode_0", [](M& m) { m.element_strides[0] = 9; },
        "mode 0 of a tensor map must have an element stride from 1 to 8, got 9");
    both(
        "nan_in_floats", [](M& m) { m.fill = TensorMapFill::nan; }, "");
    both(
        "nan_in_integers",
        [](M& m) {
          m.fill = TensorMapFill::nan;
          m.type = TensorMapType::u16;
        },
        "fills with NaN must have a floating-point type, got u16");
    // Newer drivers have further types and swizzles.
    both(
        "unknown_type", [](M& m) { m.type = static_cast<TensorMapType>(13); }, "type 13", kOurs);
    both(
        "unknown_swizzle", [](M& m) { m.swizzle = static_cast<TensorMapSwizzle>(4); }, "swizzle 4", kOurs);
    both(
        "unknown_promotion", [](M& m) { m.promotion = static_cast<TensorMapPromotion>(4); }, "L2 promotion 4");
    both(
        "unknown_fill", [](M& m) { m.fill = static_cast<TensorMapFill>(2); }, "fill 2");
  }

  // Boxes.
  const TensorMap matrix = matrix_map();
  add(
      matrix, "rank_0", [](M& m) { m.rank = 0; }, "a tensor map must have 1 to 5 modes, got 0");
  add(
      matrix, "rank_1", [](M& m) { m.rank = 1; }, "");
  add(
      matrix, "rank_5",
      [](M& m) {
        m.rank = 5;
        m.extents = {1000, 300, 2, 2, 2};
        m.strides = {0, 2048, 1 << 20, 1 << 21, 1 << 22};
        m.box = {64, 64, 1, 1, 1};
      },
      "");
  add(
      matrix, "modes_past_the_rank_are_ignored",
      [](M& m) {
        m.extents[2] = 0;
        m.strides[3] = 1;
      },
      "");
  add(
      matrix, "box_0", [](M& m) { m.box[1] = 0; }, "mode 1 of a box must have an extent from 1 to 256, got 0");
  add(
      matrix, "box_most", [](M& m) { m.box[1] = 256; }, "");
  add(
      matrix, "box_past", [](M& m) { m.box[1] = 257; }, "mode 1 of a box must have an extent from 1 to 256, got 257");
  add(
      matrix, "row_of_8_bytes", [](M& m) { m.box[0] = 4; },
      "the rows of a box must be a multiple of 16 bytes, got 8 of 4 bf16");
  add(
      matrix, "row_wider_than_128", [](M& m) { m.box[0] = 72; },
      "the rows of a box with the 128-byte swizzle must be at most 128 bytes, got 144 of 72 bf16");
  for (const auto& [swizzle, bytes] : {std::pair{TensorMapSwizzle::bytes_32, 32U}, {TensorMapSwizzle::bytes_64, 64U}}) {
    const std::string width = std::to_string(bytes);
    const auto set = [&](std::uint32_t row_bytes) {
      return [=](M& m) {
        m.swizzle = swizzle;
        m.box[0] = row_bytes / 2;
      };
    };
    add(matrix, "row_as_wide_as_" + width, set(bytes), "");
    add(matrix, "row_wider_than_" + width, set(bytes + 16),
        "the rows of a box with the " + width + "-byte swizzle must be at most " + width + " bytes");
  }
  add(
      matrix, "row_without_swizzle",
      [](M& m) {
        m.box[0] = 256;
        m.swizzle = TensorMapSwizzle::none;
      },
      "");

  // Pixels.
  const TensorMap image = image_map();
  add(
      image, "im2col_rank_2", [](M& m) { m.rank = 2; }, "an im2col tensor map must have 3 to 5 modes, got 2");
  add(
      image_map(1), "im2col_rank_3", [](M&) {}, "");
  add(
      image_map(3), "im2col_rank_5", [](M&) {}, "");
  add(
      image, "im2col_box_is_ignored",
      [](M& m) {
        m.box = {3, 1000, 0, 0, 0};
      },
      "");
  add(
      image, "no_channels", [](M& m) { m.im2col->channels_per_pixel = 0; },
      "an im2col tensor map must copy 1 to 256 channels per pixel, got 0", kOurs);
  const auto channels = [](std::uint32_t count, TensorMapSwizzle swizzle) {
    return [=](M& m) {
      m.im2col->channels_per_pixel = count;
      m.swizzle = swizzle;
    };
  };
  add(image, "channels_most", channels(256, TensorMapSwizzle::none), "");
  add(image, "channels_past", channels(264, TensorMapSwizzle::none),
      "an im2col tensor map must copy 1 to 256 channels per pixel, got 264");
  add(image, "channels_of_8_bytes", channels(4, TensorMapSwizzle::none),
      "the rows of a box must be a multiple of 16 bytes, got 8 of 4 bf16", kOurs);
  for (const auto& [swizzle, bytes] : {std::pair{TensorMapSwizzle::bytes_32, 32U},
                                       {TensorMapSwizzle::bytes_64, 64U},
                                       {TensorMapSwizzle::bytes_128, 128U}}) {
    const std::string width = std::to_string(bytes);
    add(image, "channels_as_wide_as_" + width, channels(bytes / 2, swizzle), "");
    add(image, "channels_wider_than_" + width, channels(bytes / 2 + 8, swizzle),
        "the rows of a box with the " + width + "-byte swizzle must be at most " + width + " bytes");
  }
  add(
      image, "no_pixels", [](M& m) { m.im2col->pixels_per_column = 0; },
      "an im2col tensor map must copy 1 to 1024 pixels per column, got 0", kOurs);
  add(
      image, "pixels_most", [](M& m) { m.im2col->pixels_per_column = 1024; }, "");
  add(
      image, "pixels_past", [](M& m) { m.im2col->pixels_per_column = 1025; },
      "an im2col tensor map must copy 1 to 1024 pixels per column, got 1025");

  // Corners of the bounding box, along each spatial mode. The tensor is large, so that the box has pixels.
  constexpr std::int32_t kLimits[] = {32768, 128, 16};
  for (int spatial = 1; spatial <= 3; ++spatial) {
    const std::int32_t limit = kLimits[spatial - 1];
    for (int i = 0; i < spatial; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const auto corners = [=](std::int32_t lower, std::int32_t upper) {
        return [=](M& m) {
          m.extents[at + 1] = 100000;
          m.im2col->lower_corner[at] = lower;
          m.im2col->upper_corner[at] = upper;
        };
      };
      const std::string where = "_of_mode_" + std::to_string(i + 1) + "_of_" + std::to_string(spatial + 2);
      const auto refusal = [&](const char* corner, std::int32_t value) {
        return std::string("the ") + corner + " corner of mode " + std::to_string(i + 1) + " must be from " +
               std::to_string(-limit) + " to " + std::to_string(limit - 1) + " in an im2col tensor map of " +
               std::to_string(spatial + 2) + " modes, got " + std::to_string(value);
      };
      const TensorMap from = image_map(spatial);
      add(from, "corners_least" + where, corners(-limit, -limit), "");
      add(from, "corners_most" + where, corners(limit - 1, limit - 1), "");
      add(from, "lower_corner_before" + where, corners(-limit - 1, 0), refusal("lower", -limit - 1));
      add(from, "lower_corner_past" + where, corners(limit, 0), refusal("lower", limit));
      add(from, "upper_corner_before" + where, corners(0, -limit - 1), refusal("upper", -limit - 1));
      add(from, "upper_corner_past" + where, corners(0, limit), refusal("upper", limit));
    }
  }
  const auto bounds = [](std::int32_t lower, std::int32_t upper) {
    return [=](M& m) {
      m.im2col->lower_corner[1] = lower;
      m.im2col->upper_corner[1] = upper;
    };
  };
  add(image, "one_pixel", bounds(0, -39), "");
  add(image, "no_pixel", bounds(0, -40),
      "the bounding box of an im2col tensor map must have pixels along mode 2, got 0 up to 0");
  add(image, "less_than_no_pixel", bounds(10, -37),
      "the bounding box of an im2col tensor map must have pixels along mode 2, got 10 up to 3");
  return rules;
}

}  // namespace tilewright
