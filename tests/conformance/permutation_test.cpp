// The kernel that copies a tensor to another order of modes, against loops over the modes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/conformance/gemm_checks.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/compile/compiler.hpp"
#include "tilewright/engine/launch.hpp"
#include "tilewright/lower/cuda/permute.hpp"
#include "tilewright/plan/permute.hpp"

namespace tilewright::conformance {
namespace {

/// A tensor with the modes of `shape`, whose fastest mode in memory is order[0], and `gap` elements between rows.
op::Tensor tensor_of(DType type, const op::Dims& shape, const std::vector<int>& order, std::int64_t gap) {
  op::Tensor tensor;
  tensor.dtype = type;
  tensor.shape = tensor.stride = shape;
  std::int64_t stride = 1;
  for (std::size_t i = 0; i < order.size(); ++i) {
    tensor.stride[order[i]] = stride;
    stride = stride * shape[order[i]] + (i == 0 ? gap : 0);
  }
  return tensor;
}

op::Permutation permutation_of(DType type, const op::Dims& shape, const std::vector<int>& from,
                               const std::vector<int>& to, std::int64_t gap_from = 0, std::int64_t gap_to = 0) {
  return {tensor_of(type, shape, from, gap_from), tensor_of(type, shape, to, gap_to)};
}

std::string text_of(const op::Permutation& permutation) {
  return fmt::format("{} {} from {} to {}", name(permutation.to.dtype), op::to_string(permutation.to.shape),
                     op::to_string(permutation.from.stride), op::to_string(permutation.to.stride));
}

void replace(std::string& text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  TILEWRIGHT_CHECK(at != std::string::npos, "the text lacks {}", from);
  text.replace(at, from.size(), to);
}

class Permutations : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (is_missing(GetParam())) GTEST_SKIP() << "no GPU";
  }

  runtime::Device& device() const { return *engine_of(GetParam()).device(); }

  /// Runs `plan`, whose text may be changed by a fault, and returns the first element that is wrong, or what the
  /// emulator found.
  std::string run(const plan::PermutePlan& plan, op::Permutation permutation, std::int64_t offset = 0) {
    const auto element = static_cast<std::size_t>(bytes(permutation.to.dtype));
    const auto size_of = [&](const op::Tensor& tensor) {
      return static_cast<std::size_t>(op::span_bytes(tensor)) + static_cast<std::size_t>(offset) * element;
    };
    std::vector<std::byte> from(size_of(permutation.from)), to(size_of(permutation.to) + 64, std::byte{0xEE}), expected;
    std::mt19937 random(7);
    for (std::byte& each : from) each = static_cast<std::byte>(random());
    expected = to;
    const op::Dims& shape = permutation.from.shape;
    std::int64_t count = 1;
    for (int mode = 0; mode < shape.rank(); ++mode) count *= shape[mode];
    for (std::int64_t index = 0; index < count; ++index) {
      std::int64_t rest = index, at_from = offset, at_to = offset;
      for (int mode = 0; mode < shape.rank(); ++mode) {
        at_from += rest % shape[mode] * permutation.from.stride[mode];
        at_to += rest % shape[mode] * permutation.to.stride[mode];
        rest /= shape[mode];
      }
      std::memcpy(&expected[static_cast<std::size_t>(at_to) * element],
                  &from[static_cast<std::size_t>(at_from) * element], element);
    }
    const std::shared_ptr<runtime::Device> here = engine_of(GetParam()).device();
    const runtime::DeviceBuffer source(here, from.size()), destination(here, to.size());
    here->copy_in(source.address(), from.data(), from.size(), nullptr);
    here->copy_in(destination.address(), to.data(), to.size(), nullptr);
    permutation.from.address = source.address() + static_cast<std::uint64_t>(offset) * element;
    permutation.to.address = destination.address() + static_cast<std::uint64_t>(offset) * element;
    if (const Support fits = plan::check_arguments(plan, permutation); !fits) return fits.reason();
    const plan::Launch launch = plan::launch(plan, permutation);
    try {
      loaded(plan)->launch(engine::launch_config(launch), launch.parameters());
      here->synchronize(nullptr);
    } catch (const EmulationError& error) {
      return error.what();
    }
    here->copy_out(to.data(), destination.address(), to.size(), nullptr);
    const auto differs = std::ranges::mismatch(to, expected);
    return differs.in1 == to.end() ? "" : fmt::format("byte {} is wrong", differs.in1 - to.begin());
  }

  void expect_copied(const op::Permutation& permutation, std::int64_t offset = 0) {
    op::Permutation placed = permutation;  // addresses decide about vectors
    placed.from.address = placed.to.address = 4096 + static_cast<std::uint64_t>(offset * bytes(placed.to.dtype));
    const plan::PermutePlan plan = plan::plan_permute(placed, device().properties().target);
    EXPECT_EQ(run(plan, permutation, offset), "") << text_of(permutation) << " " << plan::to_string(plan);
  }

  std::string header_from_, header_to_;  // a fault to plant

 private:
  std::shared_ptr<runtime::LoadedKernel> loaded(const plan::PermutePlan& plan) {
    constexpr const char* kHeader = "tilewright/permute/permute.cuh";
    compile::Source source;
    source.name = source.symbol = "permute";
    source.text = lower::cuda::lower(plan, "permute");
    source.target = device().properties().target;
    source.outputs.cubin = !device().properties().emulated;
    if (!header_from_.empty()) {  // the header with the fault replaces its #include
      const auto header = std::ranges::find(compile::device_headers(), kHeader, &compile::Header::name);
      std::string text(header->text);
      replace(text, "#pragma once", "");
      replace(text, header_from_, header_to_);
      replace(source.text, fmt::format("#include \"{}\"", kHeader), text);
    }
    static std::map<std::string, std::shared_ptr<runtime::LoadedKernel>> known;
    std::shared_ptr<runtime::LoadedKernel>& kernel = known[GetParam() + source.text];
    if (kernel == nullptr) {
      const compile::Artifact artifact = engine_of(GetParam()).compiler().compile(source);
      kernel = device().load({artifact.cubin, artifact.ptx}, artifact.symbol, 0);
    }
    return kernel;
  }
};

TEST_P(Permutations, OfEveryElementSize) {
  for (const DType type : {DType::s8, DType::bf16, DType::f32, DType::f64}) {
    expect_copied(permutation_of(type, {64, 48}, {0, 1}, {1, 0}));           // a matrix
    expect_copied(permutation_of(type, {67, 45}, {0, 1}, {1, 0}));           // extents off any multiple
    expect_copied(permutation_of(type, {67, 45}, {0, 1}, {1, 0}, 0, 3));     // rows that are padded
    expect_copied(permutation_of(type, {24, 5, 40}, {0, 1, 2}, {0, 2, 1}));  // contiguous in both
    expect_copied(permutation_of(type, {21, 5, 40}, {0, 1, 2}, {0, 2, 1}));  // in rows of odd length
    expect_copied(permutation_of(type, {24, 4, 20, 6}, {0, 1, 2, 3}, {2, 0, 3, 1}));
    expect_copied(permutation_of(type, {4, 3, 2, 3, 2, 3}, {0, 1, 2, 3, 4, 5}, {5, 3, 1, 4, 2, 0}));
    expect_copied(permutation_of(type, {64, 48}, {0, 1}, {1, 0}), 1);       // misaligned
    expect_copied(permutation_of(type, {300, 201}, {0, 1}, {1, 0}, 4, 7));  // several tiles
    expect_copied(permutation_of(type, {24, 900, 3}, {0, 1, 2}, {0, 2, 1}));
    expect_copied(permutation_of(type, {1, 1}, {0, 1}, {1, 0}));
    if (HasFailure()) return;
  }
}

TEST_P(Permutations, Random) {
  std::mt19937_64 random(20);
  const auto from = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  constexpr std::array kTypes{DType::s8, DType::f16, DType::f32, DType::f64};
  for (int number = 0; number < 200 && !HasFailure(); ++number) {
    const auto rank = static_cast<int>(from(1, 6));
    op::Dims shape;
    std::vector<int> order_from, order_to;
    std::int64_t elements = 1;
    for (int mode = 0; mode < rank; ++mode) {
      const std::int64_t most = std::max<std::int64_t>(1, std::min<std::int64_t>(70, 20000 / elements));
      const std::int64_t extent = from(1, 3) == 1 ? std::min<std::int64_t>(most, 8 * from(1, 5)) : from(1, most);
      shape.append(extent);
      elements *= extent;
      order_from.push_back(mode);
    }
    order_to = order_from;
    std::ranges::shuffle(order_from, random);
    std::ranges::shuffle(order_to, random);
    SCOPED_TRACE(number);
    expect_copied(permutation_of(kTypes[static_cast<std::size_t>(number) % kTypes.size()], shape, order_from, order_to,
                                 from(1, 4) == 1 ? from(1, 9) : 0, from(1, 4) == 1 ? from(1, 9) : 0));
  }
}

TEST_P(Permutations, FaultsAreFound) {
  if (GetParam() == "cuda") GTEST_SKIP() << "a fault may make the context of a GPU unusable";
  const std::array permutations{
      permutation_of(DType::f16, {40, 6, 5, 4, 4}, {0, 1, 3, 4, 2}, {2, 3, 0, 1, 4}, 8, 3),
      permutation_of(DType::f16, {37, 29}, {0, 1}, {1, 0}, 3, 3),
  };
  for (const auto& [text, fault] : {std::pair{"index = rest;", ""},
                                    {"sum.to += place * coordinate[i].to;", "sum.to += place;"},
                                    {"if (line + j >= parameters_.line_extent) continue;", ""},
                                    {"if (row + i < parameters_.row_extent) to[i]", "to[i]"},
                                    {"if (i < count) loaded.element[i]", "loaded.element[i]"},
                                    {"parameters_.rest.offsets(rest)", "parameters_.rest.offsets(0)"},
                                    {"lane >> (5 - parameters_.lane_bits)", "lane >> parameters_.lane_bits"}}) {
    std::string found;
    for (const op::Permutation& permutation : permutations) {
      header_from_ = text;
      header_to_ = fault;
      found += run(plan::plan_permute(permutation, device().properties().target), permutation);
    }
    EXPECT_NE(found, "") << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Permutations, testing::ValuesIn(devices()),
                         [](const auto& test) { return identifier(test.param); });

}  // namespace
}  // namespace tilewright::conformance
