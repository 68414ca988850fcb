// Editing a device header changes the cache keys of the kernels that include it, and of no others.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/compile/include_graph.hpp"
#include "tilewright/kernels/list.hpp"

namespace tilewright::kernels {
namespace {

/// A kernel of each family for an f16 GEMM on Hopper.
std::map<std::string, compile::Source> source_of_each_family() {
  op::Gemm gemm;
  gemm.a = op::matrix(std::uint64_t{1} << 40, DType::f16, 256, 128, plan::kRow);
  gemm.b = op::matrix(std::uint64_t{2} << 40, DType::f16, 128, 192, plan::kRow);
  gemm.d = op::matrix(std::uint64_t{3} << 40, DType::f16, 256, 192, plan::kRow);
  gemm.epilogue = op::linear_combination(op::default_compute(DType::f32, DType::f16));
  std::map<std::string, compile::Source> sources;
  for (const auto& provider : make_providers()) {
    registry::Discovery found;
    provider->discover(gemm, plan::kSm90, found);
    // Programs include no header of epilogues.
    if (provider->family() == "cuda_program" || provider->family() == "mlir") continue;
    if (!found.kernels.empty()) sources[provider->family()] = found.kernels.front()->source();
  }
  return sources;
}

TEST(HeaderEdits, AnEditedEpilogueHeaderInvalidatesTheKernelsThatIncludeItAndNoOthers) {
  const std::map<std::string, compile::Source> sources = source_of_each_family();
  ASSERT_EQ(sources.size(), 3U);
  const compile::IncludeGraph& graph = compile::IncludeGraph::of_device_headers();
  int partly_included = 0;
  for (std::size_t i = 0; i < compile::device_headers().size(); ++i) {
    std::vector<compile::Header> headers = compile::device_headers();
    if (!headers[i].name.starts_with("tilewright/epilogue/")) continue;
    const std::string edited_text = std::string(headers[i].text) + "// edited\n";
    headers[i].text = edited_text;
    const compile::IncludeGraph edited(headers);
    std::size_t invalidated = 0;
    for (const auto& [family, source] : sources) {
      const bool includes_it =
          std::ranges::count(graph.included_by(source), headers[i].name, &compile::Header::name) == 1;
      const bool is_valid = compile::source_digest(source, graph) == compile::source_digest(source, edited);
      EXPECT_EQ(is_valid, !includes_it) << family << " after an edit of " << headers[i].name;
      invalidated += is_valid ? 0U : 1U;
    }
    partly_included += 0 < invalidated && invalidated < sources.size() ? 1 : 0;
  }
  EXPECT_GT(partly_included, 0) << "no epilogue header is included by some families only";
}

TEST(HeaderEdits, NoFamilyIncludesAllHeaders) {
  for (const auto& [family, source] : source_of_each_family()) {
    EXPECT_LT(compile::IncludeGraph::of_device_headers().included_by(source).size(), compile::device_headers().size())
        << family;
  }
}

}  // namespace
}  // namespace tilewright::kernels
