// The promises of kernels on a GPU, by bits: `deterministic` over many runs, `batch_invariant` over many M. The
// emulator cannot show either, since its tensor cores add in f64.
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <vector>

#include "gpu_engine_test.hpp"
#include "tests/conformance/same_row.hpp"
#include "tilewright/engine/engine.hpp"
#include "tilewright/engine/host_operands.hpp"

namespace tilewright::engine {
namespace {

using conformance::RowCase;
using conformance::SameRow;

constexpr registry::Promises kRequired{.deterministic = true, .batch_invariant = true};

class GpuPromises : public GpuEngineTest {
 protected:
  std::vector<std::byte> bits(const RowCase& problem, std::int64_t m, std::int64_t place, std::int64_t batch = 1,
                              std::int64_t matrix = 0) {
    SameRow rows(problem, m, place, batch, matrix);
    engine_->run(rows.gemm, nullptr, nullptr, {}, kRequired);
    return rows.bits();
  }
};

/// The cases of the conformance tests, with extents at which tiles, clusters and schedules change with M.
std::vector<RowCase> large_cases() {
  std::vector<RowCase> cases = conformance::row_cases();
  for (RowCase& each : cases) {
    each.n = each.n * 7 + each.n % 8;
    each.k = each.k * 5 + each.k % 16;
  }
  return cases;
}

/// A row of D: row `place` of the last of `batch` matrices of m rows.
struct RowPlace {
  std::int64_t m, place, batch = 1;
};

std::vector<RowPlace> row_places() {
  std::vector<RowPlace> places;
  for (std::int64_t m = 1; m <= 200; ++m) places.push_back({m, m * 5 / 7});
  for (std::int64_t m = 217; m <= 5000; m += m / 5) {
    for (const std::int64_t place : {std::int64_t{0}, m / 3, m - 1}) places.push_back({m, place});
  }
  for (const auto& [m, batch] : {std::array<std::int64_t, 2>{1, 300}, {17, 9}, {130, 64}, {600, 3}})
    places.push_back({m, m / 2, batch});
  return places;
}

TEST_F(GpuPromises, TheBitsOfARowDependNeitherOnMNorOnTheBatch) {
  const std::vector<RowPlace> places = row_places();
  for (const RowCase& problem : large_cases()) {
    SCOPED_TRACE(problem.name);
    std::vector<registry::KernelPtr> kernels;  // compiled at once, because one after another they take minutes
    for (const RowPlace& each : places) {
      const SameRow rows(problem, each.m, each.place, each.batch, each.batch - 1);
      kernels.push_back(engine_->find_kernels(rows.gemm, {}, {}, {}, kRequired).front().kernel);
    }
    engine_->compile(kernels);
    const std::vector<std::byte> expected = bits(problem, 1, 0);
    for (const RowPlace& each : places) {
      ASSERT_EQ(bits(problem, each.m, each.place, each.batch, each.batch - 1), expected)
          << each.batch << " matrices of " << each.m << " rows, row " << each.place;
    }
  }
}

/// Every kernel of the required order, and not only the one that is ranked first, computes the same bits.
TEST_F(GpuPromises, AllKernelsOfOneOrderComputeTheSameBits) {
  for (const RowCase& problem : large_cases()) {
    std::set<std::vector<std::byte>> results;
    for (const std::int64_t m : {16, 300, 3000}) {
      SameRow rows(problem, m, m - 1, 1, 0);
      for (const RankedKernel& ranked : engine_->find_kernels(rows.gemm, {}, {}, {}, kRequired)) {
        engine_->run(rows.gemm, ranked.kernel, nullptr, {}, kRequired);
        results.insert(rows.bits());
        EXPECT_EQ(results.size(), 1U) << problem.name << ", m = " << m << ": " << ranked.kernel->name();
      }
    }
  }
}

/// Kernels that exchange A and B. This is a measurement: if it passes on every GPU, SumOrder::exchanges_operands may be
/// left out of the order; see docs/decisions/promises.md.
TEST_F(GpuPromises, MeasureExchangedOperands) {
  int compared = 0, different = 0;
  for (const RowCase& problem : large_cases()) {
    for (const std::int64_t m : {16, 100}) {
      SameRow rows(problem, m, m - 1, 1, 0);
      const auto required = engine_->explain(rows.gemm, {}, {}, {}, kRequired);
      if (required.kernels.empty() || !required.order) continue;
      engine_->run(rows.gemm, required.kernels.front().kernel);
      const std::vector<std::byte> expected = rows.bits();
      plan::SumOrder exchanged = *required.order;
      exchanged.exchanges_operands = !exchanged.exchanges_operands;
      for (const RankedKernel& ranked : engine_->find_kernels(rows.gemm)) {
        if (ranked.kernel->sum_order(rows.gemm) != exchanged) continue;
        engine_->run(rows.gemm, ranked.kernel);
        ++compared;
        if (rows.bits() == expected) continue;
        ++different;
        RecordProperty("different", ranked.kernel->name());
      }
    }
  }
  RecordProperty("compared", compared);
  if (different > 0) GTEST_SKIP() << different << " of " << compared << " kernels with exchanged operands differ";
}

/// The best kernel of each family, and each with a workspace, computes the same bits in 100 runs.
TEST_F(GpuPromises, KernelsAreDeterministic) {
  for (const RowCase& problem : large_cases()) {
    for (const std::int64_t m : {8, 700}) {
      SameRow rows(problem, m, 0, 1, 0);
      const auto& d = rows.gemm.d;
      const auto* const first = reinterpret_cast<const std::byte*>(d.address);
      const auto size = static_cast<std::size_t>(op::span_bytes(d));
      std::set<std::string> families;
      for (const RankedKernel& ranked : engine_->find_kernels(rows.gemm)) {
        const bool is_new = families.insert(ranked.kernel->metadata().family).second;
        if (!is_new && ranked.kernel->workspace_bytes(rows.gemm) == 0) continue;
        std::vector<std::byte> expected;
        for (int run = 0; run < 100; ++run) {
          engine_->run(rows.gemm, ranked.kernel);
          if (run == 0) expected.assign(first, first + size);
          ASSERT_EQ(std::memcmp(first, expected.data(), size), 0)
              << problem.name << ", run " << run << ": " << ranked.kernel->name();
        }
      }
    }
  }
}

/// Epilogues that reduce along M, along N and over all of D.
TEST_F(GpuPromises, ReductionsAreDeterministic) {
  const std::string text = "D = acc; row(columns) = sum(acc); column(rows) = sum(acc); total = sum(acc)";
  const op::Epilogue epilogue = op::parse_epilogue(text, DType::f32).value_or_throw();
  for (const std::int64_t m : {40, 2000}) {
    const RowCase problem{"reductions", {DType::f16, DType::f16, DType::f32, DType::f32}, {}, 512, 2048};
    SameRow rows(problem, m, 0, 1, 0);
    std::vector<float> columns(512), of_rows(static_cast<std::size_t>(m)), total(1);
    rows.gemm.epilogue = epilogue;
    rows.gemm.tensors = {{"columns", op::matrix(columns.data(), DType::f32, 1, 512)},
                         {"rows", op::matrix(of_rows.data(), DType::f32, m, 1)},
                         {"total", op::matrix(total.data(), DType::f32, 1, 1)}};
    for (const RankedKernel& ranked : engine_->find_kernels(rows.gemm)) {
      std::vector<float> first;
      for (int run = 0; run < 100; ++run) {
        engine_->run(rows.gemm, ranked.kernel);
        std::vector<float> all = columns;
        all.insert(all.end(), of_rows.begin(), of_rows.end());
        all.push_back(total.front());
        if (run == 0) first = all;
        ASSERT_EQ(std::memcmp(all.data(), first.data(), all.size() * sizeof(float)), 0)
            << "run " << run << ": " << ranked.kernel->name();
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::engine
