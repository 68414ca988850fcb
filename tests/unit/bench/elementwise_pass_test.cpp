// The kernel that applies an epilogue to a stored product, on the emulator: every epilogue, with the product in D's
// memory and in a separate buffer, reductions, and gated epilogues.
#include "bench/elementwise_pass.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "bench/arguments.hpp"
#include "bench/verify.hpp"
#include "tilewright/engine/host_operands.hpp"
#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/op/fill.hpp"

namespace tilewright::bench {
namespace {

using testing::HasSubstr;

engine::Options emulated() {
  engine::Options options;
  options.device = "emulator:sm_90a";
  options.cache_on_disk = false;
  return options;
}

/// A matrix in host memory and its copy on the device.
class Memory {
 public:
  Memory(const std::shared_ptr<runtime::Device>& device, const StoredMatrix& stored)
      : device_(device), stored_(stored), bytes_(stored.bytes()), buffer_(device, stored.bytes()) {
    op::fill_poison(host());
  }

  op::Tensor host() { return tensor(reinterpret_cast<std::uint64_t>(bytes_.data()), stored_, {}); }
  std::uint64_t address() const { return buffer_.address(); }
  void to_device() { device_->copy_in(address(), bytes_.data(), bytes_.size(), nullptr); }
  void from_device() { device_->copy_out(bytes_.data(), address(), bytes_.size(), nullptr); }
  double at(std::int64_t row, std::int64_t column) {
    return op::load(host(), stored_.rows == 1 ? 0 : row, stored_.columns == 1 ? 0 : column);
  }

 private:
  std::shared_ptr<runtime::Device> device_;
  StoredMatrix stored_;
  std::vector<std::byte> bytes_;
  runtime::DeviceBuffer buffer_;
};

/// A problem in the emulator's memory, with a random product.
struct Example {
  Example(engine::Engine& engine, const std::string& line)
      : problem(*parse_problem(line)),
        device(engine.device()),
        a(device, stored_a(problem)),
        b(device, stored_b(problem)),
        c(device, stored_c(problem)),
        d(device, stored_d(problem)),
        product(device, stored_product(problem)) {
    op::fill_normal(c.host(), 1.0, 1);
    op::fill_normal(product.host(), 4.0, 2);
    addresses = {.a = a.address(),
                 .b = b.address(),
                 .d = d.address(),
                 .plain = d.address(),
                 .c = c.address(),
                 .product = d.address()};
    if (!is_product_in_d(problem)) addresses.product = product.address();
    for (const StoredTensor& each : stored_tensors(problem)) {
      Memory& memory = tensors.emplace_back(device, each.stored);
      if (!each.is_written) op::fill_normal(memory.host(), 1.0, 3);
      memory.to_device();
      addresses.tensors[tensors.size() - 1] = memory.address();
    }
    c.to_device();
    d.to_device();
    const op::Tensor in_memory = product.host();
    std::vector<std::byte> bytes(stored_product(problem).bytes());
    std::memcpy(bytes.data(), reinterpret_cast<const void*>(in_memory.address), bytes.size());
    device->copy_in(addresses.product, bytes.data(), bytes.size(), nullptr);
  }

  op::MemoryDevice here() const { return engine::memory_device(device->properties()); }
  op::Gemm call() const { return *gemm(problem, addresses, here()); }

  /// If `text` is not empty, it replaces the text of the case's epilogue; the tensors are the same.
  Result<ElementwisePass> pass(engine::Engine& engine, const char* text = "") {
    op::Gemm with = call();
    if (*text != '\0') with.epilogue = *op::parse_epilogue(text, DType::f32);
    return ElementwisePass::make(engine, {with}, {tensor(addresses.product, stored_product(problem), here())});
  }

  op::EpilogueElement element(std::int64_t row, std::int64_t column) {
    op::EpilogueElement at{.accumulator = product.at(row, column),
                           .source = c.at(row, column),
                           .beta = problem.epilogue->beta,
                           .tensors = {}};
    const op::Epilogue epilogue = graph(problem);
    const std::vector<StoredTensor> stored = stored_tensors(problem);
    for (const op::EpilogueNode* node : epilogue.tensors()) {
      for (std::size_t i = 0; i < stored.size(); ++i) {
        if (stored[i].row.label == node->label) at.tensors.push_back(tensors[i].at(row, column));
      }
    }
    return at;
  }

  /// Values of all nodes of the graph at an element of the product.
  std::vector<double> expected(std::int64_t row, std::int64_t column) {
    const op::Epilogue epilogue = graph(problem);
    if (!epilogue.is_gated()) return op::evaluate_nodes(epilogue, element(row, column));
    const std::int64_t first = column / 2 * 2;
    return op::evaluate_pair(epilogue,
                             {element(row, first), element(row, first + 1)})[static_cast<std::size_t>(column - first)];
  }

  Problem problem;
  std::shared_ptr<runtime::Device> device;
  Memory a, b, c, d, product;
  std::vector<Memory> tensors;
  Addresses addresses;
};

void expect_near(double value, double exact, DType type) {
  EXPECT_NEAR(value, op::round_to(type, exact), 2.0 * store_error(type) * std::abs(exact) + 1e-5);
}

/// Compares a reduced output with the reduction of its elements. Kernels may add in any order, which changes the sum by
/// a few units in the last place of f32.
class ReducedOutput {
 public:
  ReducedOutput(Memory& memory, const StoredTensor& tensor, const op::EpilogueOutput& output)
      : memory_(memory),
        stored_(tensor.stored),
        output_(output),
        exact_(static_cast<std::size_t>(stored_.rows * stored_.columns), op::identity(output.reduction, DType::f32)) {}

  void add(std::int64_t row, std::int64_t column, double value) {
    double& exact = exact_[static_cast<std::size_t>(
        stored_.index(0, stored_.rows == 1 ? 0 : row, stored_.columns == 1 ? 0 : column))];
    exact = op::combine(output_.reduction, exact, value);
    magnitudes_ += std::abs(value);
  }
  void expect_exact() {
    for (std::int64_t row = 0; row < stored_.rows; ++row) {
      for (std::int64_t column = 0; column < stored_.columns; ++column) {
        const double exact = exact_[static_cast<std::size_t>(stored_.index(0, row, column))];
        EXPECT_NEAR(memory_.at(row, column), exact, magnitudes_ / static_cast<double>(stored_.rows) * 0x1p-22)
            << output_.label << "[" << row << "," << column << "]";
      }
    }
  }

 private:
  Memory& memory_;
  StoredMatrix stored_;
  const op::EpilogueOutput& output_;
  std::vector<double> exact_;
  double magnitudes_ = 0.0;
};

void expect_epilogue(engine::Engine& engine, const std::string& line) {
  SCOPED_TRACE(line);
  Example example(engine, line);
  const Result<ElementwisePass> pass = example.pass(engine);
  ASSERT_TRUE(pass) << pass.reason();
  pass->run(0, nullptr);
  example.d.from_device();
  for (Memory& tensor : example.tensors) tensor.from_device();
  const op::Epilogue epilogue = graph(example.problem);
  const std::vector<StoredTensor> stored = stored_tensors(example.problem);
  std::map<std::string, ReducedOutput> reduced;
  for (std::int64_t row = 0; row < example.problem.m; ++row) {
    for (std::int64_t column = 0; column < example.problem.n; ++column) {
      const std::vector<double> values = example.expected(row, column);
      expect_near(example.d.at(row, column / epilogue.columns_per_element()),
                  values[static_cast<std::size_t>(epilogue.node_of_d())], example.problem.out);
      for (const op::EpilogueOutput& output : epilogue.outputs) {
        for (std::size_t i = 0; i < stored.size(); ++i) {
          if (stored[i].row.label != output.label) continue;
          const double value = values[static_cast<std::size_t>(output.node)];
          if (stored[i].is_reduced) {
            reduced.try_emplace(output.label, example.tensors[i], stored[i], output)
                .first->second.add(row, column, value);
          } else {
            expect_near(example.tensors[i].at(row, column), value, stored[i].stored.dtype);
          }
        }
      }
      if (testing::Test::HasFailure()) return;
    }
  }
  for (auto& [label, output] : reduced) output.expect_exact();
}

class ElementwisePassTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      engine_.compiler();
    } catch (const ToolchainNotFound& error) {
      GTEST_SKIP() << error.what();
    }
  }

  engine::Engine engine_{emulated()};
};

TEST_F(ElementwisePassTest, AppliesEveryEpilogueInPlaceIfTheProductFits) {
  for (const EpilogueCase& one : epilogue_cases())
    expect_epilogue(engine_, fmt::format("dtype=bf16 m=37 n=72 k=8 ldd=80 epilogue={}", one.name));
}

TEST_F(ElementwisePassTest, ReadsAWiderProductFromASeparateBuffer) {
  for (const char* epilogue : {"quantise", "bias", "bias_gelu_aux", "residual", "quantise_amax", "row_sum", "swiglu"})
    expect_epilogue(engine_, fmt::format("dtype=e4m3 m=19 n=64 k=16 b=col epilogue={}", epilogue));
}

TEST_F(ElementwisePassTest, TakesF16AndF32) {
  expect_epilogue(engine_, "dtype=f16 m=5 n=24 k=8 epilogue=bias_gelu");
  expect_epilogue(engine_, "dtype=bf16 out=f32 m=5 n=20 k=8 epilogue=residual");
}

TEST_F(ElementwisePassTest, HalvesVectorsOfAnyType) {
  expect_epilogue(engine_, "dtype=f16 m=5 n=24 k=8 epilogue=swiglu");
  expect_epilogue(engine_, "dtype=bf16 out=f32 m=5 n=20 k=8 epilogue=swiglu");
}

TEST_F(ElementwisePassTest, StoresNothingOutsideAGatedD) {
  Example example(engine_, "dtype=bf16 m=3 n=24 k=8 ldd=32 epilogue=swiglu");
  Memory whole(example.device, {DType::bf16, 1, 3, 32, op::MatrixLayout::row_major, 32});
  op::fill_integers(whole.host(), -7, -7, 4);
  whole.to_device();
  example.addresses.d = whole.address();
  const Result<ElementwisePass> pass = example.pass(engine_);
  ASSERT_TRUE(pass) << pass.reason();
  pass->run(0, nullptr);
  whole.from_device();
  for (std::int64_t row = 0; row < 3; ++row) {
    for (std::int64_t column = 0; column < 32; ++column)
      EXPECT_EQ(whole.at(row, column) == -7.0, column >= 12) << row << "," << column;
  }
}

TEST_F(ElementwisePassTest, SumsRowsThatTakeSeveralRounds) {
  expect_epilogue(engine_, "dtype=bf16 m=3 n=9000 k=8 epilogue=row_sum");
  expect_epilogue(engine_, "dtype=e4m3 m=2 n=20000 k=16 b=col epilogue=row_sum");
}

TEST_F(ElementwisePassTest, FindsTheLargestMagnitudeOfSeveralCtas) {
  for (const std::int64_t at : {std::int64_t{0}, std::int64_t{77777}, std::int64_t{64 * 2048 - 1}}) {
    Example example(engine_, "dtype=e4m3 m=64 n=2048 k=16 b=col epilogue=quantise_amax");
    const double largest = -4096.0;
    op::store(example.product.host(), at / 2048, at % 2048, largest);
    example.product.to_device();
    const Result<ElementwisePass> pass = example.pass(engine_);
    ASSERT_TRUE(pass) << pass.reason();
    for (int again = 0; again < 2; ++again) pass->run(0, nullptr);
    example.tensors[1].from_device();
    EXPECT_EQ(example.tensors[1].at(0, 0), 4096.0) << at;
    op::store(example.product.host(), at / 2048, at % 2048, 100.0);
    example.product.to_device();
    pass->run(0, nullptr);  // run() must clear the maximum of the previous call
    example.tensors[1].from_device();
    EXPECT_EQ(example.tensors[1].at(0, 0), 100.0) << at;
  }
}

TEST_F(ElementwisePassTest, DoesNotStoreDAgainIfItIsTheProduct) {
  const auto stores = [&](const char* line) {
    const Example example(engine_, line);
    const op::Tensor product = tensor(example.addresses.product, stored_product(example.problem), example.here());
    return elementwise_text(example.call(), product).find("kStoresD = true") != std::string::npos;
  };
  EXPECT_FALSE(stores("dtype=bf16 m=4 n=64 k=16 b=col epilogue=row_sum"));
  EXPECT_TRUE(stores("dtype=e4m3 m=4 n=64 k=16 b=col epilogue=row_sum"));
  EXPECT_TRUE(stores("dtype=bf16 m=4 n=64 k=16 b=col epilogue=bias"));
}

TEST_F(ElementwisePassTest, RefusesOtherReductions) {
  constexpr const char* kBias = "dtype=bf16 out=f32 m=4 n=8 k=8 epilogue=bias";
  constexpr const char* kScale = "dtype=bf16 m=4 n=8 k=8 epilogue=quantise";
  const auto reason = [&](const char* line, const char* text) {
    return Example(engine_, line).pass(engine_, text).reason();
  };
  EXPECT_THAT(reason(kBias, "D = acc; row(bias) = sum(D)"), HasSubstr("the reduction \"bias\" must be over rows"));
  EXPECT_THAT(reason(kScale, "D = acc; scale = sum(D)"), HasSubstr("the reduction \"scale\" must be over rows"));
  EXPECT_THAT(reason(kScale, "D = acc; single(scale) = max(D)"), HasSubstr("must be over rows, or be"));
}

TEST_F(ElementwisePassTest, RefusesRowsThatAreNotWholeVectors) {
  const auto reason = [&](const char* line) { return Example(engine_, line).pass(engine_).reason(); };
  EXPECT_THAT(reason("dtype=bf16 m=4 n=12 ldd=16 k=8 epilogue=bias"), HasSubstr("n must be a multiple of 8, got 12"));
  EXPECT_THAT(reason("dtype=bf16 m=4 n=8 ldd=12 k=8 epilogue=bias"),
              HasSubstr("the row stride of the product must be a multiple"));
  EXPECT_THAT(reason("dtype=bf16 m=4 n=24 ldd=14 k=8 epilogue=swiglu"),
              HasSubstr("the row stride of D must be a multiple of 4 elements, got 14"));
}

}  // namespace
}  // namespace tilewright::bench
