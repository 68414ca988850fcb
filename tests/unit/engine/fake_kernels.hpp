// Fake kernels for tests, correct and faulty ones, and a provider that ranks them before the shipped kernels.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/expression.hpp"
#include "tilewright/registry/provider.hpp"

namespace tilewright::engine {

// D = alpha * A * B of a packed f32 problem, one thread per element.
inline constexpr const char* kRightBody =
    "const int row = threadIdx.x / p.n, column = threadIdx.x % p.n; float sum = 0.0f;"
    "for (int i = 0; i < p.k; ++i) sum += p.a[row * p.k + i] * p.b[i * p.n + column];"
    "p.d[threadIdx.x] = p.alpha * sum;";

/// t = alpha * A * B + row(bias) + residual + row_index; D = max(t, 0); aux = t
inline op::Epilogue epilogue_with_tensors() {
  const op::Expression t = op::alpha() * op::acc() + op::row("bias") + op::full("residual") + op::row_index();
  return op::make_epilogue("tuned", DType::f32, op::call("relu", {t}), {{"aux", t}}).value_or_throw();
}

// D = alpha * A * B with epilogue_with_tensors().
inline const std::string kBodyWithoutAux =
    "const int row = threadIdx.x / p.n, column = threadIdx.x % p.n; float sum = 0.0f;"
    "for (int i = 0; i < p.k; ++i) sum += p.a[row * p.k + i] * p.b[i * p.n + column];"
    "const float t = p.alpha * sum + p.bias[column] + p.residual[threadIdx.x] + row;"
    "p.d[threadIdx.x] = t > 0.0f ? t : 0.0f;";
inline const std::string kRightBodyWithTensors = kBodyWithoutAux + "p.aux[threadIdx.x] = t;";

/// Its parameters are a, b, d, m, n, k, alpha, and the auxiliary tensors by name; all tensors are f32.
class FakeKernel final : public registry::Kernel {
 public:
  FakeKernel(registry::KernelMetadata metadata, std::string body, double estimate_us, int launch_error)
      : Kernel(std::move(metadata)), body_(std::move(body)), estimate_us_(estimate_us), launch_error_(launch_error) {}

 protected:
  compile::Source do_source() const override {
    std::string tensors;
    for (const op::EpilogueTensor& each : op::epilogue_tensors(metadata().operands().epilogue))
      tensors += fmt::format("float* {}; ", each.label);
    compile::Source source;
    source.text = "struct P { float* a; float* b; float* d; int m; int n; int k; float alpha; " + tensors +
                  "};\n"
                  "extern \"C\" __global__ void " +
                  name() + "(const __grid_constant__ P p) { " + body_ + " }\n";
    return source;
  }
  plan::Launch do_launch(const op::Problem& problem) const override {
    const auto& arguments = std::get<op::Gemm>(problem);
    if (launch_error_ != 0) throw DriverError(launch_error_, fmt::format("fake driver error {}", launch_error_));
    plan::Launch launch;
    launch.block[0] = static_cast<std::uint32_t>(arguments.m() * arguments.n());
    for (const op::Tensor* tensor : {&arguments.a, &arguments.b, &arguments.d}) launch.append(tensor->address);
    for (const std::int64_t extent : {arguments.m(), arguments.n(), arguments.k()}) {
      launch.append(static_cast<std::int32_t>(extent));
    }
    launch.append(static_cast<float>(arguments.alpha));
    for (const op::EpilogueTensor& each : op::epilogue_tensors(arguments.epilogue))
      launch.append(arguments.tensor(each.label).address);
    launch.finish();
    return launch;
  }
  double do_estimate_us(const op::Problem&) const override { return estimate_us_; }

 private:
  std::string body_;
  double estimate_us_;
  int launch_error_;
};

struct Fake {
  std::string family;
  std::string body = kRightBody;
  int launch_error = 0;
  plan::OpClass op_class = plan::OpClass::tensor_op;  // simt kernels are tried first as the reference
};

/// Offers the fake kernels, ranked in their order and before the shipped ones.
class FakeProvider final : public registry::Provider {
 public:
  explicit FakeProvider(std::vector<Fake> fakes) : fakes_(std::move(fakes)) {}
  std::string family() const override { return "fakes"; }
  void discover(const op::Problem& problem, const Target& target, registry::Discovery& found) const override {
    const auto& arguments = std::get<op::Gemm>(problem);
    double estimate_us = 1e-6;
    for (const Fake& fake : fakes_) {
      plan::Design design = fake.op_class == plan::OpClass::simt ? plan::Design(plan::SimtGemmDesign())
                                                                 : plan::Design(plan::Sm80GemmDesign());
      plan::tiling(design).target = target;
      registry::KernelMetadata metadata{fake.family, op::describe(arguments), design};
      found.kernels.push_back(
          std::make_shared<FakeKernel>(std::move(metadata), fake.body, estimate_us *= 2.0, fake.launch_error));
    }
  }
  Result<registry::KernelPtr> make(const op::Signature&, const plan::Design&) const override {
    return refuse("no explicit designs");
  }

 private:
  std::vector<Fake> fakes_;
};

/// Faulty kernels, none of which breaks the device.
inline std::vector<Fake> faulty_kernels() {
  return {
      {"constant_result", "p.d[threadIdx.x] = 1.0f;"},
      {"one_wrong_element", std::string(kRightBody) + "if (threadIdx.x == 95) p.d[95] += 1.0f;"},
      {"no_result", "if (threadIdx.x >= 4096) p.d[0] = 0.0f;"},
      {"stray_after", std::string(kRightBody) + "p.d[p.m * p.n + 7] = 3.0f;"},
      {"stray_before", std::string(kRightBody) + "p.d[-1] = 3.0f;"},
      {"writes_input", std::string(kRightBody) + "p.a[threadIdx.x] = 5.0f;"},
      {"broken", "no such thing;"},
      {"unlaunchable", kRightBody, 1},
  };
}

/// Faulty kernels for an 8 x 12 problem with epilogue_with_tensors().
inline std::vector<Fake> faulty_kernels_with_tensors() {
  const std::string& right = kRightBodyWithTensors;
  return {
      {"wrong_aux", right + "if (threadIdx.x == 95) p.aux[95] += 1.0f;"},
      {"no_aux", kBodyWithoutAux},
      {"stray_aux", right + "p.aux[p.m * p.n + 7] = 3.0f;"},
      {"stray_before_aux", right + "p.aux[-1] = 3.0f;"},
      {"to_vector", right + "p.bias[column] = 5.0f;"},
      {"to_residual", right + "p.residual[threadIdx.x] = 5.0f;"},
      {"first_row", right + "p.d[threadIdx.x] = fmaxf(t - row, 0.0f);"},
  };
}

}  // namespace tilewright::engine
