// Compares instructions with the results of an NVIDIA H200. h200_results.txt has one line per instruction: the first 16
// digits of the SHA-256 of the results of 256 lanes, or "approximate" for instructions that a GPU approximates and the
// emulator does not; the type of %d; the type and the kind of values of each source; the instruction. The inputs are
// pseudo-random and drawn in the order of the file, so that a line may only be added at its end.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>

#include "lane_kernel.hpp"
#include "tilewright/base/hash.hpp"
#include "tilewright/base/text.hpp"

namespace tilewright::emulator {
namespace {

constexpr int kLanes = 256;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

constexpr std::array<std::uint64_t, 13> kIntegers = {
    0, 1, 2, ~0ULL, 0x80000000U, 0x7fffffffU, 0x8000000000000000U, 0x7fffffffffffffffU, 31, 32, 33, 0xffff, 0x8000};
constexpr std::array<float, 25> kFloats = {
    0.0F,          -0.0F,           1.0F,           -1.0F, kInf,   -kInf,       kNan,      1e-40F,   -1e-40F,
    0x1p-126F,     0x1.fffffep127F, 0.5F,           1.5F,  2.5F,   -2.5F,       65504.0F,  65519.0F, 65520.0F,
    2147483648.0F, 4294967296.0F,   -2147483648.0F, 1e20F, -1e20F, 0.99999994F, 1.0000001F};
constexpr std::array<double, 19> kDoubles = {
    0.0, -0.0, 1.0,  -1.0,  double{kInf}, -double{kInf}, double{kNan},       1e-310, 65520.0, 1e300, 0.5, 1.5,
    2.5, -2.5, 1e19, -1e19, 2147483648.0, 1 + 0x1p-30,   0x1.002p0 + 0x1p-40};
constexpr std::array<std::uint16_t, 18> kHalves = {0,      0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00,
                                                   0x7e00, 1,      0x8001, 0x7bff, 0x3f80, 0xbf80,
                                                   0x7f80, 0xff80, 0x7fc0, 0x4000, 0xffff, 0x7c01};

/// Draws special values first, then a mixture of special values and random ones of several magnitudes.
class Inputs {
 public:
  std::vector<std::byte> draw(LaneType type, const std::string& kind) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(kLanes * type.bytes));
    for (std::size_t i = 0; i < kLanes; ++i) {
      const std::uint64_t value = one(kind, i);
      const auto width = static_cast<std::size_t>(type.bytes);
      std::memcpy(&bytes[i * width], &value, width);
    }
    return bytes;
  }

 private:
  std::uint64_t one(const std::string& kind, std::size_t i) {
    std::uint64_t value = random_();
    if (kind == "integer") {
      if (i < kIntegers.size()) {
        value = kIntegers[i];
      } else {
        value >>= random_() % 64;
      }
      if (random_() % 5 == 0) value = kIntegers[random_() % kIntegers.size()];
    } else if (kind == "amount") {
      value = random_() % 70;
      if (i < 3) value = ~0ULL >> (i * 8);
    } else if (kind == "f32") {
      return real(kFloats, i, [&] {
        const auto numerator = static_cast<float>(static_cast<std::int64_t>(random_() % 2000001) - 1000000);
        return numerator * 0.37F / static_cast<float>(1U << (random_() % 20));
      });
    } else if (kind == "f64") {
      return real(kDoubles, i,
                  [&] { return static_cast<double>(static_cast<std::int64_t>(random_() % 2000001) - 1000000) * 0.37; });
    } else if (kind == "half") {
      value = random_();
      if (i < kHalves.size()) value = kHalves[i];
      if (random_() % 3 == 0) {
        const std::uint64_t low = kHalves[random_() % kHalves.size()];
        value = low | (std::uint64_t{kHalves[random_() % kHalves.size()]} << 16);
      }
    }
    return value;
  }

  template <class T, std::size_t N, class Draw>
  std::uint64_t real(const std::array<T, N>& special, std::size_t i, Draw&& draw) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    if (i < N || random_() % 4 == 0) return std::bit_cast<Bits>(special[i < N ? i : random_() % N]);
    if (random_() % 2 != 0) return static_cast<Bits>(random_());
    return std::bit_cast<Bits>(draw());
  }

  std::mt19937_64 random_{5};
};

LaneType lane_type_named(const std::string& name) {
  if (name == "f32") return {"f32", 4};
  if (name == "f64") return {"f64", 8};
  if (name == "b16") return {"b16", 2};
  return name == "b64" ? LaneType{"b64", 8} : LaneType{"b32", 4};
}

TEST(Hardware, ResultsEqualThoseOfAnH200) {
  std::ifstream file(std::string(TILEWRIGHT_SOURCE_DIR) + "/tests/unit/emulator/h200_results.txt");
  ASSERT_TRUE(file.is_open());
  Inputs inputs;
  int compared = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string digest, destination, sources, body;
    fields >> digest >> destination >> sources;
    std::getline(fields >> std::ws, body);
    std::vector<LaneType> types;
    std::vector<std::vector<std::byte>> values;
    for (const std::string& source : split(sources, ',')) {
      const std::vector<std::string> parts = split(source, ':');
      types.push_back(lane_type_named(parts.at(0)));
      values.push_back(inputs.draw(types.back(), parts.at(1)));
    }
    if (digest == "approximate") continue;
    const auto device = test_device();
    const LaneType d = lane_type_named(destination);
    const runtime::DeviceBuffer out(device, static_cast<std::size_t>(kLanes * d.bytes));
    std::vector<runtime::DeviceBuffer> buffers;
    std::vector<runtime::DeviceAddress> addresses{out.address()};
    for (const auto& bytes : values) {
      buffers.push_back(upload(device, bytes));
      addresses.push_back(buffers.back().address());
    }
    launch(*device, lane_kernel(body, d, types, ".reg .pred %p;\n"), "k", addresses, {kLanes, 1, 1});
    EXPECT_EQ(sha256(download<std::byte>(*device, out)).hex().substr(0, 16), digest) << body;
    ++compared;
  }
  EXPECT_GT(compared, 300);
}

}  // namespace
}  // namespace tilewright::emulator
