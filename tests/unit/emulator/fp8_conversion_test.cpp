// Conversions to and from FP8 in device/tilewright/numeric: by the instructions of sm_89, and in integer arithmetic for
// earlier GPUs. Tests all codes, all ties and the floats next to them, saturation and NaN.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "cuda_kernel.hpp"
#include "lane_kernel.hpp"
#include "tests/unit/base/fp8_codes.hpp"
#include "tilewright/base/float_format.hpp"

namespace tilewright::emulator {
namespace {

struct Format {
  const char* name;
  const std::array<double, 128>& codes;
  std::uint8_t (*narrow)(double);
};
const Format kFormats[] = {{"e4m3", kE4m3Codes, f64_to_e4m3}, {"e5m2", kE5m2Codes, f64_to_e5m2}};

constexpr Target kTargets[] = {kSm80, kSm90a};

std::string kernel_text(const Format& format) {
  return fmt::format(R"(
#include "tilewright/numeric/convert.cuh"
using Element = tilewright::{}_t;
extern "C" __global__ void narrow(const float* from, Element* to, tilewright::Vector<Element, 2>* pairs) {{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = tilewright::convert<Element>(from[i]);
  if (i % 2 == 0) pairs[i / 2] = tilewright::convert_pair<Element>(from[i], from[i + 1]);
}}
extern "C" __global__ void widen(const Element* from, float* to) {{
  to[threadIdx.x] = tilewright::convert<float>(from[threadIdx.x]);
}})",
                     format.name);
}

/// All values of the format, all ties between two of them and the floats next to those, and random bits; of both signs.
std::vector<float> edge_and_random_values(const Format& format) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values{kInfinity, std::nanf(""), 1e9F, 0x1p-149F, 0x1p-126F, std::numeric_limits<float>::max()};
  for (std::size_t code = 0; code + 1 < format.codes.size(); ++code) {
    const auto low = static_cast<float>(format.codes[code]);
    const auto middle = static_cast<float>((format.codes[code] + format.codes[code + 1]) / 2);
    for (const float value : {low, middle, std::nextafter(middle, 0.0F), std::nextafter(middle, kInfinity)}) {
      values.push_back(value);
    }
  }
  std::mt19937 random(1);
  while (values.size() < 1024) values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  for (std::size_t i = 0; i < 1024; ++i) values.push_back(-values[i]);
  return values;
}

class Fp8Conversion : public testing::TestWithParam<std::tuple<Format, Target>> {
 protected:
  void SetUp() override {
    if (compiler() == nullptr) GTEST_SKIP() << "no NVRTC on this machine";
  }
};

TEST_P(Fp8Conversion, RoundsAsOnTheHost) {
  const auto& [format, target] = GetParam();
  const std::vector<float> values = edge_and_random_values(format);
  const auto device = make_emulated_device(target, {});
  const auto from = upload(device, values);
  const auto to = upload(device, std::vector<std::uint8_t>(values.size()));
  const auto pairs = upload(device, std::vector<std::uint8_t>(values.size()));
  launch(*device, ptx_of("narrow", kernel_text(format), target), "narrow",
         {from.address(), to.address(), pairs.address()}, {128, 1, 1},
         {static_cast<std::uint32_t>(values.size() / 128), 1, 1});
  const auto narrowed = download<std::uint8_t>(*device, to);
  const auto in_pairs = download<std::uint8_t>(*device, pairs);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(narrowed[i], format.narrow(values[i])) << values[i];
    EXPECT_EQ(in_pairs[i], format.narrow(values[i])) << values[i];
  }
}

TEST_P(Fp8Conversion, WidensAllCodes) {
  const auto& [format, target] = GetParam();
  std::vector<std::uint8_t> codes(256);
  for (std::size_t code = 0; code < codes.size(); ++code) codes[code] = static_cast<std::uint8_t>(code);
  const auto device = make_emulated_device(target, {});
  const auto from = upload(device, codes);
  const auto to = upload(device, std::vector<float>(codes.size()));
  launch(*device, ptx_of("widen", kernel_text(format), target), "widen", {from.address(), to.address()}, {256, 1, 1});
  const auto widened = download<float>(*device, to);
  for (std::size_t code = 0; code < codes.size(); ++code) {
    const double value = format.codes[code & 0x7fU];
    const double expected = code < 0x80U ? value : -value;
    EXPECT_TRUE(widened[code] == expected || (std::isnan(widened[code]) && std::isnan(expected)))
        << code << " became " << widened[code];
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Fp8Conversion,
                         testing::Combine(testing::ValuesIn(kFormats), testing::ValuesIn(kTargets)),
                         [](const auto& tested) {
                           return fmt::format("{}_{}", std::get<0>(tested.param).name,
                                              std::get<1>(tested.param).name());
                         });

}  // namespace
}  // namespace tilewright::emulator
