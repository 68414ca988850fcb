// The copies of operands for checking and timing, with a fake driver whose device memory is host memory.
#include "tilewright/tune/tuning_operands.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "tests/unit/engine/host_problem.hpp"
#include "tilewright/op/expression.hpp"
#include "tilewright/runtime/cuda_device.hpp"

namespace tilewright::tune {
namespace {

using namespace engine;  // for the shared fakes of the engine's tests

std::map<std::string, op::Tensor> tensors_of(const op::Gemm& gemm) {
  std::map<std::string, op::Tensor> all{{"A", gemm.a}, {"B", gemm.b}, {"C", gemm.c}, {"D", gemm.d}};
  for (const op::NamedTensor& each : gemm.tensors) all.emplace(each.name, each.tensor);
  return all;
}

TEST(RotatingOperands, CopyEveryTensor) {
  const auto device = runtime::open_cuda_device(0, {}, runtime::DriverOptions{.library_path = FAKE_DRIVER_PATH});
  HostProblem problem(300, 200, 100, {.padding = 3});
  problem.gemm.beta = 1.0;
  problem.set_epilogue(op::make_epilogue("timed", DType::f32,
                                         op::acc() + op::beta() * op::c() + op::row("bias") + op::full("residual"),
                                         {{"aux", op::acc()}})
                           .value_or_throw());
  const TuningOperands operands(device, problem.gemm);
  RotatingOperands sets(device, operands);
  const std::map<std::string, op::Tensor> originals = tensors_of(std::get<op::Gemm>(operands.on_host()));
  ASSERT_EQ(originals.size(), 7U);

  std::map<std::uint64_t, std::uint64_t> regions;  // begin and end
  std::size_t bytes_of_all = 0;
  for (std::size_t i = 0; i < sets.count(); ++i) {
    const auto& set = std::get<op::Gemm>(sets.next());
    EXPECT_TRUE(op::validate(set)) << op::validate(set).reason();
    EXPECT_EQ(op::describe(set), op::describe(problem.gemm)) << "including alignments";
    for (const auto& [name, tensor] : tensors_of(set)) {
      const op::Tensor& original = originals.at(name);
      const auto size = static_cast<std::size_t>(op::span_bytes(tensor));
      EXPECT_TRUE(regions.emplace(tensor.address, tensor.address + size).second) << name << " of set " << i;
      EXPECT_EQ(std::memcmp(reinterpret_cast<const void*>(tensor.address),
                            reinterpret_cast<const void*>(original.address), size),
                0)
          << name << " of set " << i;
      bytes_of_all += size;
    }
  }
  EXPECT_GE(bytes_of_all, std::size_t{2} * static_cast<std::size_t>(device->properties().l2_bytes));
  for (auto region = regions.begin(); std::next(region) != regions.end(); ++region)
    EXPECT_LE(region->second, std::next(region)->first) << "two tensors overlap";
}

// Sets the outputs to the reference, changes one element, and expects that it is found.
void expect_found(HostProblem& problem, const std::string& label, std::int64_t row, std::int64_t column) {
  const auto device = runtime::open_cuda_device(0, {}, runtime::DriverOptions{.library_path = FAKE_DRIVER_PATH});
  TuningOperands operands(device, problem.gemm);
  op::reference(operands.on_host());
  const OutputImages right = operands.output_images();
  EXPECT_EQ(operands.find_wrong_element({}), "");
  EXPECT_EQ(operands.find_wrong_element(right), "");
  const auto& on_host = std::get<op::Gemm>(operands.on_host());
  const op::Tensor& tensor = label == "D" ? on_host.d : on_host.tensor(label);
  op::store(tensor, row, column, op::load(tensor, row, column) + 1000.0);
  const std::string found = operands.find_wrong_element(right);
  EXPECT_TRUE(found.starts_with(fmt::format("{}[{},{}] is ", label, row, column))) << found;
}

TEST(TuningOperands, AColumnOfAPairIsCheckedWithItsElementOfD) {
  HostProblem problem(8, 12, 16);
  problem.gemm.d = op::matrix(problem.gemm.d.address, DType::f32, 8, 6);
  problem.set_epilogue(op::make_epilogue("pairs", DType::f32,
                                         op::call("even", {op::acc()}) - 2.0 * op::call("odd", {op::acc()}),
                                         {{"aux", op::acc()}})
                           .value_or_throw());
  expect_found(problem, "D", 7, 5);
  expect_found(problem, "aux", 7, 11);
  expect_found(problem, "aux", 0, 6);
}

TEST(TuningOperands, ReductionsAreCheckedOverAllTheirElements) {
  HostProblem problem(8, 12, 16);
  problem.set_epilogue(op::make_epilogue("reduced", DType::f32, op::acc(),
                                         {{"of_columns", op::acc(), op::Reduction::sum, op::kRowVector},
                                          {"of_rows", op::acc(), op::Reduction::maximum, op::kColumnVector},
                                          {"all", op::acc(), op::Reduction::sum, op::kSingle}})
                           .value_or_throw());
  expect_found(problem, "of_columns", 0, 11);
  expect_found(problem, "of_rows", 7, 0);
  expect_found(problem, "all", 0, 0);
}

TEST(TuningOperands, HaveRedZonesAndTheCallersLayout) {
  const auto device = runtime::open_cuda_device(0, {}, runtime::DriverOptions{.library_path = FAKE_DRIVER_PATH});
  HostProblem problem(30, 20, 10);
  problem.set_epilogue(
      op::make_epilogue("tuned", DType::f32, op::acc() + op::column("scale") + op::single("shift")).value_or_throw());
  problem.gemm.tensors[0].tensor.address += 4;
  const TuningOperands operands(device, problem.gemm);
  EXPECT_EQ(op::describe(operands.on_device()), op::describe(problem.gemm));
  for (const auto& [name, tensor] : std::get<op::Gemm>(operands.on_device()).tensors) {
    const auto* begin = reinterpret_cast<const float*>(tensor.address);
    for (std::int64_t i = 0; i < tensor.rows(); ++i)
      EXPECT_LE(std::fabs(begin[i]), 8.0F) << name << " holds small integers";
    EXPECT_TRUE(std::isnan(begin[-1]) && std::isnan(begin[tensor.rows()])) << name << " is surrounded by NaN";
  }
}

// The copies have arrays of their own, and matrices that are no more aligned than the problem declares.
TEST(TuningOperands, PointerArraysPointToPrivateMemory) {
  const auto device = runtime::open_cuda_device(0, {}, runtime::DriverOptions{.library_path = FAKE_DRIVER_PATH});
  HostProblem problem(20, 24, 16, {.padding = 1, .batch = 3});
  problem.gemm.beta = 1.0;
  problem.use_pointer_arrays();
  TuningOperands operands(device, problem.gemm);
  const auto& on_host = std::get<op::Gemm>(operands.on_host());
  const auto& on_device = std::get<op::Gemm>(operands.on_device());
  RotatingOperands sets(device, operands);
  for (const op::Gemm* copy : {&on_device, &std::get<op::Gemm>(sets.next()), &std::get<op::Gemm>(sets.next())}) {
    EXPECT_TRUE(op::validate(*copy)) << op::validate(*copy).reason();
    EXPECT_EQ(op::describe(*copy), op::describe(problem.gemm));
    for (const auto& [tensor, host] :
         {std::pair{&copy->a, &on_host.a}, {&copy->b, &on_host.b}, {&copy->c, &on_host.c}}) {
      // The fake driver's device memory is host memory.
      const auto* const addresses = reinterpret_cast<const std::uint64_t*>(tensor->address);
      for (std::int64_t i = 0; i < 3; ++i) {
        const op::Tensor matrix = op::slice(*host, i);
        EXPECT_EQ(addresses[i] % 8, 4U) << "declared to be aligned to 4 bytes";
        EXPECT_EQ(
            std::memcmp(reinterpret_cast<const void*>(addresses[i]), reinterpret_cast<const void*>(matrix.address),
                        static_cast<std::size_t>(op::span_bytes(matrix))),
            0);
      }
    }
  }
  EXPECT_TRUE(operands.inputs_are_intact());

  operands.poison_outputs();
  operands.fetch_outputs();
  EXPECT_EQ(operands.find_out_of_bounds_write(), "");
  op::reference(operands.on_host());
  const OutputImages right = operands.output_images();
  EXPECT_EQ(operands.find_wrong_element({}), "");
  EXPECT_EQ(operands.find_wrong_element(right), "");
  EXPECT_EQ(operands.find_out_of_bounds_write(), "") << "the reference writes only elements";
  const op::Tensor last = op::slice(on_host.d, 2);
  op::store(last, 3, 5, op::load(last, 3, 5) + 1000.0);
  EXPECT_EQ(operands.find_wrong_element(right).find("D[2,3,5] is "), 0U) << operands.find_wrong_element(right);
  reinterpret_cast<float*>(last.address)[24] = 0.0F;  // the padding of a row
  EXPECT_NE(operands.find_out_of_bounds_write(), "");
}

}  // namespace
}  // namespace tilewright::tune
