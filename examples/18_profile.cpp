// Profiles GEMMs of several sizes with the best kernel of two families, and tunes one of them. On the emulator, kernels
// are verified and counted; on a GPU they are timed too.
#include <cstdio>
#include <vector>

#include "tilewright/tilewright.hpp"

using namespace tilewright;

namespace {

/// A GEMM without memory: a profile allocates operands of its own.
op::Problem shapes(std::int64_t m, std::int64_t n, std::int64_t k) {
  op::Gemm gemm;
  gemm.a = op::matrix(nullptr, DType::f16, m, k);
  gemm.b = op::matrix(nullptr, DType::f16, k, n);
  gemm.d = op::matrix(nullptr, DType::f16, m, n);
  for (op::Tensor* tensor : {&gemm.a, &gemm.b, &gemm.d}) tensor->device = {op::MemoryDevice::Kind::shape, 0};
  return gemm;
}

}  // namespace

int main() {
  engine::Engine engine;
  std::vector<op::Problem> problems;
  for (const std::int64_t m : profile::parse_extents("32:64", "m").value_or_throw())
    problems.push_back(shapes(m, 64, 64));

  const profile::ProfileOptions options{.top = 1, .providers = {"sm80_gemm", "simt_gemm"}};
  const profile::Profile found = profile::profile(engine, problems, options);
  const std::string json = profile::to_json(found);
  std::printf("%s", profile::to_table(json).c_str());
  const std::string report = profile::to_html(json);  // one file, which opens in a browser without a network
  std::printf("a report of %zu bytes\n", report.size());

  bool is_right = found.problems.size() == 2 && report.find("</html>") != std::string::npos;
  for (const profile::ProblemProfile& problem : found.problems) {
    is_right = is_right && problem.kernels.size() == 2;
    for (const profile::KernelProfile& kernel : problem.kernels)
      is_right = is_right && kernel.disposition == profile::Disposition::passed;
  }

  // On a GPU the fastest kernel is remembered, and later calls use it.
  const bool is_emulated = engine.device()->properties().emulated;
  const tune::TuningReport tuning = tune::tune(engine, problems.front(), {.top = 2, .checks_only = is_emulated});
  std::printf("%s\n", tune::to_json(tuning).c_str());
  return is_right && tuning.candidates.size() == 2 ? 0 : 1;
}
