// Kernels in MLIR, translated to PTX and executed: a vector add, and TMA, mbarriers, setmaxnreg and wgmma.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

#include "hopper_kernel.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/compile/compiler.hpp"
#include "tilewright/compile/file.hpp"
#include "tilewright/compile/mlir_compiler.hpp"

namespace tilewright::emulator {
namespace {

using testing::HasSubstr;

class MlirKernels : public testing::Test {
 protected:
  void SetUp() override {
#ifndef TILEWRIGHT_HAS_MLIR
    GTEST_SKIP() << "built without MLIR";
#endif
  }

  /// PTX of tests/unit/compile/mlir_snippets/NAME.mlir, whose kernel has the same name.
  static std::string ptx_of_snippet(const std::string& name, Target target, std::string_view from = {},
                                    std::string_view to = {}) {
    compile::Source source;
    source.name = source.symbol = name;
    source.language = compile::Language::mlir;
    source.text = compile::read_file(
        fmt::format("{}/tests/unit/compile/mlir_snippets/{}.mlir", TILEWRIGHT_SOURCE_DIR, name), std::size_t{1} << 20);
    if (!from.empty()) {
      const std::size_t at = source.text.find(from);
      if (at == std::string::npos) throw InvalidArgument("the snippet has no such text");
      source.text.replace(at, from.size(), to);
    }
    source.target = target;
    source.outputs = {.cubin = false, .ptx = true};
    return compile::MlirCompiler({}, compile::capture_environment()).compile(source).ptx;
  }
};

/// The parameter struct of vector_add.mlir.
struct VectorAdd {
  runtime::DeviceAddress a, b, c;
  std::int32_t n;
};

void launch_vector_add(runtime::Device& device, const std::string& ptx, const VectorAdd& parameters) {
  const auto kernel = device.load(runtime::Image{{}, ptx}, "vector_add", 0);
  runtime::LaunchConfig config;
  config.grid = {static_cast<std::uint32_t>((parameters.n + 127) / 128), 1, 1};
  config.block = {128, 1, 1};
  kernel->launch(config, std::as_bytes(std::span(&parameters, 1)));
}

TEST_F(MlirKernels, VectorAddIsExact) {
  constexpr int kElements = 1000;
  const auto device = test_device();
  std::vector<float> a, b;
  for (int i = 0; i < kElements; ++i) {
    a.push_back(static_cast<float>(i));
    b.push_back(static_cast<float>(3 * i - 7));
  }
  const std::vector<float> unset(kElements + 8, std::numeric_limits<float>::quiet_NaN());
  const runtime::DeviceBuffer da = upload(device, a), db = upload(device, b), dc = upload(device, unset);
  launch_vector_add(*device, ptx_of_snippet("vector_add", kSm80),
                    {da.address(), db.address(), dc.address(), kElements});
  const std::vector<float> c = download<float>(*device, dc);
  for (int i = 0; i < kElements; ++i) ASSERT_EQ(c[static_cast<std::size_t>(i)], static_cast<float>(4 * i - 7)) << i;
  for (std::size_t i = kElements; i < c.size(); ++i) EXPECT_TRUE(std::isnan(c[i])) << "written past n at " << i;
}

TEST_F(MlirKernels, AFindingNamesTheProgramsLine) {
  const auto device = test_device();
  const runtime::DeviceBuffer a(device, 128 * 4), b(device, 128 * 4), c(device, 128 * 4);
  const std::string ptx = ptx_of_snippet("vector_add", kSm80);
  const Finding finding = finding_of([&] {
    launch_vector_add(*device, ptx, {a.address(), b.address() + 2, c.address(), 128});
  });
  EXPECT_EQ(finding.kind, FindingKind::misaligned_access);
  EXPECT_THAT(to_string(finding), HasSubstr("vector_add.tw:"));
}

/// The parameter struct of wgmma.mlir.
struct WgmmaParameters {
  EncodedTensorMap a, b;
  runtime::DeviceAddress d;
  std::int32_t steps;
};

constexpr int kTile = 128, kSteps = 3, kDepth = 64 * kSteps;

/// A tile of 128 rows x 64 columns of a row-major bf16 matrix, with the 128-byte swizzle.
EncodedTensorMap map_of(runtime::Device& device, const runtime::DeviceBuffer& matrix) {
  TensorMap map;
  map.type = TensorMapType::bf16;
  map.rank = 2;
  map.address = matrix.address();
  map.extents = {kDepth, kTile};
  map.strides = {0, kDepth * 2};
  map.box = {64, kTile};
  map.swizzle = TensorMapSwizzle::bytes_128;
  return device.encode(map);
}

int value(int seed, int row, int k) { return (row * 7 + k * 3 + seed) % 5 - 2; }

std::vector<std::uint16_t> matrix_of(int seed) {
  std::vector<std::uint16_t> elements;
  for (int row = 0; row < kTile; ++row) {
    for (int k = 0; k < kDepth; ++k) {
      const auto number = static_cast<float>(value(seed, row, k));
      elements.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(number) >> 16));
    }
  }
  return elements;
}

std::vector<float> run_wgmma(const std::string& ptx) {
  const auto device = test_device();
  const runtime::DeviceBuffer a = upload(device, matrix_of(0)), b = upload(device, matrix_of(3));
  const runtime::DeviceBuffer d = upload(device, std::vector<float>(384 * 64, std::numeric_limits<float>::quiet_NaN()));
  const WgmmaParameters parameters{map_of(*device, a), map_of(*device, b), d.address(), kSteps};
  const auto kernel = device->load(runtime::Image{{}, ptx}, "wgmma", 66560);
  runtime::LaunchConfig config;
  config.block = {384, 1, 1};
  config.dynamic_smem_bytes = 66560;
  // The struct of LLVM ends at a multiple of 8 bytes, that of C++ at one of 64, the alignment of the tensor maps.
  kernel->launch(config, std::as_bytes(std::span(&parameters, 1)).first(offsetof(WgmmaParameters, steps) + 8));
  return download<float>(*device, d);
}

TEST_F(MlirKernels, TmaAndWgmmaGiveTheExactProduct) {
  const std::vector<float> d = run_wgmma(ptx_of_snippet("wgmma", kSm90a));
  for (int row = 0; row < kTile; ++row) {
    for (int column = 0; column < kTile; ++column) {
      int sum = 0;
      for (int k = 0; k < kDepth; ++k) {
        const int times = k % 64 < 16 ? 2 : 1;  // the first 16 columns of each step come from registers once more
        sum += times * value(0, row, k) * value(3, column, k);
      }
      // PTX ISA, fragments of D of wgmma: thread 128 + t has 64 numbers.
      const int t = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
      const int at = column / 8 * 4 + row % 16 / 8 * 2 + column % 2;
      const float found = d[static_cast<std::size_t>((128 + t) * 64 + at)];
      ASSERT_EQ(found, static_cast<float>(sum)) << "row " << row << ", column " << column;
    }
  }
}

TEST_F(MlirKernels, AMissingFenceIsFound) {
  // Without wgmma.fence, the first wgmma may read registers that earlier instructions write.
  const std::string ptx = ptx_of_snippet("wgmma", kSm90a, "    nvvm.wgmma.fence.aligned\n", "");
  const Finding finding = finding_of([&] { run_wgmma(ptx); });
  EXPECT_THAT(to_string(finding), HasSubstr("wgmma.fence"));
}

}  // namespace
}  // namespace tilewright::emulator
