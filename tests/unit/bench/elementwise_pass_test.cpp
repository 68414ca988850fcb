// The kernel that applies an epilogue to a stored product, on the emulator: every epilogue, in place and beside D.
#include "bench/elementwise_pass.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/arguments.hpp"
#include "bench/verify.hpp"
#include "tilewright/engine/host_operands.hpp"
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

/// A matrix on the host and its copy on the device.
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

/// A problem in the emulator's memory. Its product is random.
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
    addresses = {.a = a.address(), .b = b.address(), .d = d.address(), .c = c.address(), .product = d.address()};
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

  Result<ElementwisePass> pass(engine::Engine& engine) {
    const op::MemoryDevice here = engine::memory_device(device->properties());
    return ElementwisePass::make(engine, {*gemm(problem, addresses, here)},
                                 {tensor(addresses.product, stored_product(problem), here)});
  }

  std::vector<double> expected(std::int64_t row, std::int64_t column) {
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
    return op::evaluate_nodes(epilogue, at);
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
  for (std::int64_t row = 0; row < example.problem.m; ++row) {
    for (std::int64_t column = 0; column < example.problem.n; ++column) {
      const std::vector<double> values = example.expected(row, column);
      expect_near(example.d.at(row, column), values[static_cast<std::size_t>(epilogue.node_of_d())],
                  example.problem.out);
      for (const op::EpilogueOutput& output : epilogue.outputs) {
        for (std::size_t i = 0; i < stored.size(); ++i) {
          if (stored[i].row.label != output.label) continue;
          expect_near(example.tensors[i].at(row, column), values[static_cast<std::size_t>(output.node)],
                      stored[i].stored.dtype);
        }
      }
      if (testing::Test::HasFailure()) return;
    }
  }
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

TEST_F(ElementwisePassTest, AppliesEveryEpilogueInPlace) {
  for (const EpilogueCase& one : epilogue_cases())
    expect_epilogue(engine_, fmt::format("dtype=bf16 m=37 n=72 k=8 ldd=80 epilogue={}", one.name));
}

TEST_F(ElementwisePassTest, ReadsAWiderProductBesideAnEightBitD) {
  for (const char* epilogue : {"quantise", "bias", "bias_gelu_aux", "residual"})
    expect_epilogue(engine_, fmt::format("dtype=e4m3 m=19 n=64 k=16 b=col epilogue={}", epilogue));
}

TEST_F(ElementwisePassTest, TakesF16AndF32) {
  expect_epilogue(engine_, "dtype=f16 m=5 n=24 k=8 epilogue=bias_gelu");
  expect_epilogue(engine_, "dtype=bf16 out=f32 m=5 n=20 k=8 epilogue=residual");
}

TEST_F(ElementwisePassTest, RefusesRowsThatAreNotWholeVectors) {
  const auto reason = [&](const char* line) { return Example(engine_, line).pass(engine_).reason(); };
  EXPECT_THAT(reason("dtype=bf16 m=4 n=12 ldd=16 k=8 epilogue=bias"), HasSubstr("n must be a multiple of 8, got 12"));
  EXPECT_THAT(reason("dtype=bf16 m=4 n=8 ldd=12 k=8 epilogue=bias"),
              HasSubstr("rows of the product must be a multiple"));
}

}  // namespace
}  // namespace tilewright::bench
