// The interleaved layouts of tensors: offsets, views, batches, signatures, and problems that are refused.
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/op/fill.hpp"
#include "tilewright/op/gemm_view.hpp"
#include "tilewright/op/problem.hpp"
#include "tilewright/op/reference.hpp"

namespace tilewright::op {
namespace {

constexpr MatrixLayout kByRows = MatrixLayout::row_interleaved, kByColumns = MatrixLayout::column_interleaved;

Tensor bytes_of(std::int64_t rows, std::int64_t columns, MatrixLayout layout, std::int64_t ld = 0) {
  return matrix(std::uint64_t{1} << 40, DType::s8, rows, columns, layout, ld);
}

TEST(Interleaved, HasNames) {
  EXPECT_EQ(name(kByRows), "row_interleaved_32");
  EXPECT_EQ(name(kByColumns), "column_interleaved_32");
  for (const MatrixLayout layout : kMatrixLayouts) {
    EXPECT_EQ(parse_matrix_layout(name(layout)), layout);
    EXPECT_EQ(transposed(transposed(layout)), layout);
    EXPECT_NE(has_contiguous_rows(transposed(layout)), has_contiguous_rows(layout));
    EXPECT_EQ(is_interleaved(transposed(layout)), is_interleaved(layout));
  }
  EXPECT_EQ(parse_matrix_layout("interleaved"), std::nullopt);
}

TEST(Interleaved, ElementsAreWhereCutlassHasThem) {
  constexpr std::int64_t kRows = 5, kColumns = 96;
  for (const std::int64_t ld : {std::int64_t{0}, std::int64_t{200}}) {
    const Tensor by_columns = bytes_of(kRows, kColumns, kByColumns, ld);
    const Tensor by_rows = bytes_of(kColumns, kRows, kByRows, ld);
    const std::int64_t step = ld == 0 ? 32 * kRows : ld;
    std::set<std::int64_t> offsets;
    for (std::int64_t r = 0; r < kRows; ++r) {
      for (std::int64_t c = 0; c < kColumns; ++c) {
        EXPECT_EQ(by_columns.offset(r, c), c / 32 * step + r * 32 + c % 32);
        EXPECT_EQ(by_rows.offset(c, r), by_columns.offset(r, c));
        EXPECT_EQ(OperandView::of(by_columns).offset(r, c), by_columns.offset(r, c));
        offsets.insert(by_columns.offset(r, c));
      }
    }
    EXPECT_EQ(offsets.size(), kRows * kColumns);
    EXPECT_EQ(span_bytes(by_columns), *offsets.rbegin() + 1);
    EXPECT_EQ(span_bytes(by_rows), *offsets.rbegin() + 1);
    EXPECT_EQ(transposed(by_columns), by_rows);
    EXPECT_EQ(*view_matrix(by_columns, "A"), (MatrixView{kByColumns, step}));
    EXPECT_EQ(*view_matrix(by_rows, "A"), (MatrixView{kByRows, step}));
    const Tensor strided = strided_modes(by_rows);
    EXPECT_EQ(strided.shape, (Dims{3, kRows, 32}));
    EXPECT_EQ(strided.stride, (Dims{step, 32, 1}));
    EXPECT_EQ(span_bytes(strided), span_bytes(by_rows));
  }
}

TEST(Interleaved, BatchesFollowEachOtherInWholeBlocks) {
  const Tensor batch = batched(bytes_of(5, 96, kByColumns, 200), 4);
  EXPECT_EQ(batch.batch_stride(), 600);
  EXPECT_EQ(slice(batch, 2).address, batch.address + 1200);
  EXPECT_EQ(slice(batch, 2).interleaved, InterleavedMode::columns);
  EXPECT_EQ(strided_modes(batch).shape, (Dims{4, 5, 3, 32}));
  EXPECT_EQ(span_bytes(batch), 3 * 600 + 2 * 200 + 5 * 32);
}

TEST(Interleaved, EmptyMatricesHaveTheirLayout) {
  for (const MatrixLayout layout : {kByRows, kByColumns}) {
    const Result<MatrixView> view = view_matrix(bytes_of(0, 0, layout), "A");
    ASSERT_TRUE(view) << view.reason();
    EXPECT_EQ(view->layout, layout);
    EXPECT_EQ(span_bytes(bytes_of(0, 32, layout)), 0);
  }
}

TEST(Interleaved, RefusesOtherShapesAndStrides) {
  EXPECT_EQ(view_matrix(bytes_of(5, 40, kByColumns), "A").reason(),
            "A is column_interleaved_32: it needs a multiple of 32 columns, got 40");
  EXPECT_EQ(view_matrix(bytes_of(33, 5, kByRows), "B").reason(),
            "B is row_interleaved_32: it needs a multiple of 32 rows, got 33");
  EXPECT_EQ(view_matrix(bytes_of(5, 64, kByColumns, 159), "A").reason(),
            "A of shape (5,64) is column_interleaved_32: it needs a leading dimension of at least 160, got 159");
  Tensor wide = bytes_of(5, 64, kByColumns);
  wide.stride[0] = 64;
  EXPECT_EQ(view_matrix(wide, "A").reason(), "A is column_interleaved_32: its rows must be 32 elements apart, got 64");
  EXPECT_TRUE(view_matrix(bytes_of(5, 32, kByColumns, 1), "A")) << "one block has no leading dimension";
}

plan::TypeCase types(DType element = DType::s8, DType d = DType::s8) {
  return {element, element, d, default_accumulator(element)};
}

Gemm problem(const plan::Layouts& layouts, const plan::TypeCase& of = types()) {
  return plan::problem_of(plan::describe(of, layouts), 64, 96, 128);
}

TEST(Interleaved, SignaturesHaveLayoutAndAlignment) {
  const plan::Layouts cutlass{kByColumns, kByRows, kByColumns, kByColumns};
  Gemm gemm = problem(cutlass);
  gemm.beta = 1.0;
  ASSERT_TRUE(validate(gemm)) << validate(gemm).reason();
  const GemmSignature signature = describe(gemm);
  EXPECT_EQ(to_string(signature.a), "s8:column_interleaved_32:16");
  EXPECT_EQ(to_string(signature.b), "s8:row_interleaved_32:16");
  EXPECT_EQ(to_string(signature.c), "s8:column_interleaved_32:16");
  EXPECT_EQ(signature.d, signature.c);
  EXPECT_TRUE(validate(signature)) << validate(signature).reason();
  EXPECT_EQ(transposed(signature).d.layout, kByRows);
  EXPECT_EQ(describe(transposed(gemm)), transposed(signature));
  EXPECT_NE(key(Problem(gemm)), key(Problem(problem({kByColumns, kByRows, kByColumns, plan::kRow}))));
  gemm.a.address += 4;
  EXPECT_EQ(to_string(describe(gemm).a), "s8:column_interleaved_32:4");
}

TEST(Interleaved, IsForBytesWithBlocksAlongK) {
  const auto reason = [](const Gemm& gemm) { return validate(gemm).reason(); };
  EXPECT_EQ(reason(problem({kByRows, kByRows, plan::kRow, plan::kRow})),
            "A is row_interleaved_32: its blocks of 32 must be along k, so make it column_interleaved_32");
  EXPECT_EQ(reason(problem({kByColumns, kByColumns, plan::kRow, plan::kRow})),
            "B is column_interleaved_32: its blocks of 32 must be along k, so make it row_interleaved_32");
  EXPECT_EQ(reason(problem({kByColumns, plan::kColumn, plan::kRow, plan::kRow}, types(DType::f16, DType::f16))),
            "A is column_interleaved_32: interleaved layouts are for s8 and u8 operands, got f16");
  EXPECT_EQ(reason(problem({plan::kRow, plan::kColumn, plan::kRow, kByColumns}, types(DType::f32, DType::f32))),
            "D is column_interleaved_32: interleaved layouts are for s8 and u8 operands, got f32");
  Gemm overlapping = problem({kByColumns, kByRows, kByColumns, kByColumns});
  overlapping.d = batched(overlapping.d, 2, 32);
  EXPECT_EQ(reason(overlapping), "matrices of D overlap: the batch stride is 32 elements, but each matrix spans 6144");
}

TEST(Interleaved, TheReferenceReadsAndStoresIt) {
  constexpr std::int64_t kM = 3, kN = 64, kK = 64;
  std::vector<std::int8_t> a(kM * kK), b(kK * kN), c(kM * kN), d(kM * kN, 99);
  Gemm gemm;
  gemm.a = matrix(a.data(), DType::s8, kM, kK, kByColumns);
  gemm.b = matrix(b.data(), DType::s8, kK, kN, kByRows);
  gemm.c = matrix(c.data(), DType::s8, kM, kN, kByColumns);
  gemm.d = matrix(d.data(), DType::s8, kM, kN, kByColumns);
  gemm.accumulator = DType::s32;
  gemm.beta = 1.0;
  fill_integers(gemm.a, -1, 1, 1);
  fill_integers(gemm.b, -1, 1, 2);
  fill_integers(gemm.c, -9, 9, 3);
  reference(view(gemm));
  for (std::size_t m = 0; m < kM; ++m) {
    for (std::size_t n = 0; n < kN; ++n) {
      int sum = c[n / 32 * kM * 32 + m * 32 + n % 32];
      for (std::size_t k = 0; k < kK; ++k)
        sum += a[k / 32 * kM * 32 + m * 32 + k % 32] * b[k / 32 * kN * 32 + n * 32 + k % 32];
      EXPECT_EQ(d[n / 32 * kM * 32 + m * 32 + n % 32], sum) << m << "," << n;
    }
  }
  EXPECT_TRUE(compare(view(gemm)).is_exact());
  d[40] = static_cast<std::int8_t>(d[40] + 1);  // block 0, row 1, column 8
  EXPECT_EQ(compare(view(gemm)).worst.row, 1);
  EXPECT_EQ(compare(view(gemm)).worst.column, 8);
}

}  // namespace
}  // namespace tilewright::op
