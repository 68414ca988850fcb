// Problem files: the meaning of a line, lines that are refused, and the files of bench/problems.
#include "bench/problem.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "bench/arguments.hpp"

namespace tilewright::bench {
namespace {

using testing::HasSubstr;

TEST(ParseProblem, DefaultsFollowTheElementType) {
  const Problem f16 = *parse_problem("dtype=f16 m=8 n=16 k=32 b=col");
  EXPECT_EQ(f16.dtype, DType::f16);
  EXPECT_EQ(f16.out, DType::f16);
  EXPECT_EQ(f16.accumulator, DType::f32);
  EXPECT_EQ(f16.a, op::MatrixLayout::row_major);
  EXPECT_EQ(f16.b, op::MatrixLayout::column_major);
  EXPECT_EQ((std::array{f16.m, f16.n, f16.k}), (std::array<std::int64_t, 3>{8, 16, 32}));

  EXPECT_EQ(parse_problem("dtype=s8 m=1 n=1 k=1")->out, DType::s32);
  EXPECT_EQ(parse_problem("dtype=f64 m=1 n=1 k=1")->accumulator, DType::f64);
}

TEST(ParseProblem, EveryFieldCanBeGiven) {
  const Problem problem =
      *parse_problem("dtype=f32 m=1 n=2 k=3 a=col d=col out=f16 acc=f32 math=multiply_add_fast_f32 kernel=sm80");
  EXPECT_EQ(problem.a, op::MatrixLayout::column_major);
  EXPECT_EQ(problem.d, op::MatrixLayout::column_major);
  EXPECT_EQ(problem.out, DType::f16);
  EXPECT_EQ(problem.math, op::MathOperation::multiply_add_fast_f32);
  EXPECT_EQ(problem.kernel, "sm80");
}

TEST(ParseProblem, CasesHaveAnIdAndAClass) {
  const Problem problem = *parse_problem("id=G03-TN class=large dtype=bf16 m=1 n=1 k=1");
  EXPECT_EQ(problem.id, "G03-TN");
  EXPECT_EQ(problem.problem_class, "large");
  EXPECT_EQ(parse_problem("dtype=bf16 m=1 n=1 k=1")->id, "");
}

TEST(ParseProblem, FastAccumulationIsTheMathOfEightBitFloats) {
  const Problem fast = *parse_problem("dtype=e4m3 out=bf16 m=1 n=1 k=1 math=multiply_add_fast_accumulate");
  EXPECT_EQ(fast.dtype, DType::e4m3);
  EXPECT_EQ(fast.out, DType::bf16);
  EXPECT_EQ(fast.accumulator, DType::f32);
  EXPECT_EQ(fast.math, op::MathOperation::multiply_add_fast_accumulate);
  EXPECT_EQ(parse_problem("dtype=e4m3 out=bf16 m=1 n=1 k=1")->math, op::MathOperation::multiply_add);
}

TEST(ParseProblem, Tf32IsF32WithItsMath) {
  const Problem problem = *parse_problem("dtype=tf32 m=1 n=1 k=1");
  EXPECT_EQ(problem.dtype, DType::f32);
  EXPECT_EQ(problem.out, DType::f32);
  EXPECT_EQ(problem.math, op::MathOperation::multiply_add_tf32);
}

TEST(ParseProblem, AnEpilogueIsOneOfTheTable) {
  const Problem problem = *parse_problem("id=L01-TN-bias dtype=bf16 m=1 n=1 k=1 b=col epilogue=bias");
  ASSERT_NE(problem.epilogue, nullptr);
  EXPECT_EQ(problem.epilogue->name, "bias");
  EXPECT_EQ(title(problem), "bf16 1x1x1 row col row, bias");
  EXPECT_EQ(plain(problem).epilogue, nullptr);
  EXPECT_EQ(parse_problem("dtype=bf16 m=1 n=1 k=1")->epilogue, nullptr);
}

TEST(ParseProblem, AnEpilogueTakesSingleProductsOfFloatsWithARowMajorD) {
  const auto reason = [](const char* line) { return parse_problem(line).reason(); };
  EXPECT_THAT(reason("dtype=bf16 m=1 n=1 k=1 epilogue=magic"),
              HasSubstr("epilogue must be one of bias, bias_relu, bias_gelu, bias_gelu_aux, residual, quantise, "
                        "quantise_amax, row_sum, swiglu, got"));
  EXPECT_THAT(reason("dtype=bf16 m=1 n=1 k=1 d=col epilogue=bias"), HasSubstr("epilogue=bias needs d=row"));
  EXPECT_THAT(reason("dtype=bf16 m=1 n=1 k=1 batch=2 epilogue=bias"), HasSubstr("needs batch=1, got 2"));
  EXPECT_THAT(reason("class=large dtype=bf16 m=1 n=1 k=1 epilogue=bias"),
              HasSubstr("classes are for problems without an epilogue"));
  EXPECT_THAT(reason("dtype=s8 m=1 n=1 k=1 epilogue=bias"), HasSubstr("at most 32 bits, got s32"));
  EXPECT_THAT(reason("dtype=f64 m=1 n=1 k=1 epilogue=bias"), HasSubstr("at most 32 bits, got f64"));
}

TEST(ParseProblem, AGatedEpilogueHalvesD) {
  const auto reason = [](const char* line) { return parse_problem(line).reason(); };
  EXPECT_THAT(reason("dtype=bf16 m=4 n=7 k=8 epilogue=swiglu"), HasSubstr("epilogue=swiglu needs an even n, got 7"));
  EXPECT_THAT(reason("dtype=bf16 m=4 n=8 k=8 ldd=3 epilogue=swiglu"), HasSubstr("ldd must be at least 4, got 3"));
  const Problem problem = *parse_problem("dtype=bf16 m=4 n=8 k=8 ldd=4 epilogue=swiglu");
  EXPECT_EQ(stored_d(problem).columns, 4);
  EXPECT_DOUBLE_EQ(operations(problem), operations(plain(problem)));
}

TEST(ParseProblem, RefusalsNameTheMistake) {
  const auto reason = [](const char* line) { return parse_problem(line).reason(); };
  EXPECT_THAT(reason("m=1 n=1 k=1"), HasSubstr("dtype is missing"));
  EXPECT_THAT(reason("dtype=f32 m=1 n=1"), HasSubstr("k is missing"));
  EXPECT_THAT(reason("dtype=f33 m=1 n=1 k=1"), HasSubstr("f33"));
  EXPECT_THAT(reason("dtype=s4 m=2 n=2 k=2"), HasSubstr("dtype must be an element type of whole bytes, got \"s4\""));
  EXPECT_THAT(reason("dtype=f32 m=2 n=2 k=2 out=b1"), HasSubstr("out must be an element type of whole bytes"));
  EXPECT_THAT(reason("dtype=f32 m=0 n=1 k=1"), HasSubstr("m must be a positive number"));
  EXPECT_THAT(reason("dtype=f32 m=1x n=1 k=1"), HasSubstr("1x"));
  EXPECT_THAT(reason("dtype=f32 m=99999999999999999999 n=1 k=1"), HasSubstr("m must be"));
  EXPECT_THAT(reason("dtype=f32 m=1 m=2 n=1 k=1"), HasSubstr("twice"));
  EXPECT_THAT(reason("dtype=f32 m=1 n=1 k=1 b=diagonal"), HasSubstr("row or col"));
  EXPECT_THAT(reason("dtype=f32 m=1 n=1 k=1 speed=9"), HasSubstr("unknown key"));
  EXPECT_THAT(reason("dtype=f32 m=1 n=1 k=1 math=magic"), HasSubstr("magic"));
  EXPECT_THAT(reason("fast"), HasSubstr("key=value"));
  EXPECT_THAT(reason("dtype=f32 m=1 n=1 k=1 batch=0"), HasSubstr("batch must be a positive number"));
  EXPECT_THAT(reason("dtype=f32 m=4294967296 n=2 k=4294967296"),
              HasSubstr("the size of A of 1x4294967296x4294967296 in bytes"));
  EXPECT_THAT(reason("dtype=f32 m=1 n=9 k=1 ldd=9223372036854775807"),
              HasSubstr("the size of D of 1x1x9 in bytes needs more"));
  EXPECT_THAT(reason("dtype=f32 m=4 n=5 k=6 lda=5"), HasSubstr("lda must be at least 6, got 5"));
  EXPECT_THAT(reason("dtype=f32 m=4 n=5 k=6 b=col ldb=5"), HasSubstr("ldb must be at least 6, got 5"));
  EXPECT_THAT(reason("dtype=f32 m=4 n=5 k=6 d=col ldd=3"), HasSubstr("ldd must be at least 4, got 3"));
}

TEST(StoredMatrix, OffsetsFollowLeadingDimensionAndBatch) {
  const Problem problem = *parse_problem("dtype=bf16 out=f32 batch=3 m=4 n=5 k=6 b=col lda=7 ldb=8");
  const StoredMatrix a = stored_a(problem);
  EXPECT_EQ(a.batch_stride(), 4 * 7);
  EXPECT_EQ(a.index(2, 3, 5), 2 * 28 + 3 * 7 + 5);
  EXPECT_EQ(a.bytes(), 3u * 28 * 2);
  const StoredMatrix b = stored_b(problem);
  EXPECT_EQ(b.batch_stride(), 5 * 8);
  EXPECT_EQ(b.index(1, 5, 4), 40 + 4 * 8 + 5);
  const StoredMatrix d = stored_d(problem);
  EXPECT_EQ(d.ld, 5);
  EXPECT_EQ(d.bytes(), 3u * 4 * 5 * 4);
}

TEST(Title, NamesBatchLeadingDimensionsAndMath) {
  const auto of = [](const char* line) { return title(*parse_problem(line)); };
  EXPECT_EQ(of("dtype=f16 m=1 n=2 k=3"), "f16 1x2x3 row row row");
  EXPECT_EQ(of("dtype=bf16 batch=8 m=1 n=2 k=3 b=col lda=9"), "bf16 8x 1x2x3 row col row, ld 9 3 2");
  EXPECT_EQ(of("dtype=e4m3 out=bf16 m=1 n=2 k=3 math=multiply_add_fast_accumulate"),
            "e4m3 1x2x3 row row row -> bf16 multiply_add_fast_accumulate");
}

TEST(Operations, CountTwoPerProductOfEachMatrixOfTheBatch) {
  EXPECT_DOUBLE_EQ(operations(*parse_problem("dtype=f16 batch=5 m=10 n=20 k=30")), 60000.0);
}

constexpr std::uint64_t kFar = std::uint64_t{1} << 40;
constexpr Addresses kApart{.a = kFar,
                           .b = 2 * kFar,
                           .d = 3 * kFar,
                           .plain = 10 * kFar,
                           .c = 4 * kFar,
                           .product = 5 * kFar,
                           .tensors = {6 * kFar, 7 * kFar, 8 * kFar, 9 * kFar}};
constexpr op::MemoryDevice kGpu{op::MemoryDevice::Kind::cuda, 1};

TEST(Arguments, CarryTheProblem) {
  const Result<op::Gemm> call = gemm(*parse_problem("dtype=f16 out=f32 m=4 n=5 k=6 a=col lda=8 ldd=9"), kApart, kGpu);
  ASSERT_TRUE(call) << call.reason();
  EXPECT_EQ(call->a.address, kFar);
  EXPECT_EQ(call->a.stride, (op::Dims{1, 8}));
  EXPECT_EQ(call->b.stride, (op::Dims{5, 1}));
  EXPECT_EQ(call->d.stride, (op::Dims{9, 1}));
  EXPECT_EQ(call->d.dtype, DType::f32);
  EXPECT_EQ(call->d.device.ordinal, 1);
}

TEST(Arguments, ABatchHasRankThree) {
  const op::Gemm batched = *gemm(*parse_problem("dtype=f16 batch=8 m=4 n=4 k=4"), kApart, kGpu);
  EXPECT_EQ(batched.batch(), 8);
  EXPECT_EQ(batched.a.shape, (op::Dims{8, 4, 4}));
  EXPECT_EQ(batched.d.stride, (op::Dims{16, 4, 1}));
}

TEST(Arguments, CarryTheEpilogueAndItsTensors) {
  const Problem problem = *parse_problem("dtype=bf16 m=4 n=8 k=16 b=col epilogue=bias_gelu_aux");
  const op::Gemm call = *gemm(problem, kApart, kGpu);
  EXPECT_EQ(call.tensor("bias").shape, (op::Dims{1, 8}));
  EXPECT_EQ(call.tensor("bias").address, 6 * kFar);
  EXPECT_EQ(call.tensor("aux").shape, (op::Dims{4, 8}));
  EXPECT_EQ(call.tensor("aux").address, 7 * kFar);
  EXPECT_EQ(call.c.address, 0u);
  EXPECT_TRUE(gemm(plain(problem), kApart, kGpu)->tensors.empty());

  const op::Gemm reduced = *gemm(*parse_problem("dtype=bf16 m=4 n=8 k=16 b=col epilogue=row_sum"), kApart, kGpu);
  EXPECT_EQ(reduced.tensor("sums").shape, (op::Dims{4, 1}));
  EXPECT_EQ(reduced.tensor("sums").dtype, DType::f32);

  const op::Gemm sum = *gemm(*parse_problem("dtype=bf16 m=4 n=8 k=16 b=col epilogue=residual"), kApart, kGpu);
  EXPECT_EQ(sum.c.address, 4 * kFar);
  EXPECT_EQ(sum.beta, 1.0);
}

TEST(Arguments, AGatedDDoesNotUseTheMemoryOfThePlainProduct) {
  const Problem problem = *parse_problem("dtype=bf16 m=4 n=8 k=16 b=col ldd=6 epilogue=swiglu");
  const op::Gemm paired = *gemm(problem, kApart, kGpu);
  EXPECT_EQ(paired.n(), 8);
  EXPECT_EQ(paired.d.shape, (op::Dims{4, 4}));
  EXPECT_EQ(paired.d.stride, (op::Dims{6, 1}));
  EXPECT_EQ(paired.d.address, kApart.d);
  const op::Gemm product = *gemm(plain(problem), kApart, kGpu);
  EXPECT_EQ(product.d.shape, (op::Dims{4, 8}));
  EXPECT_EQ(product.d.stride, (op::Dims{8, 1}));
  EXPECT_EQ(product.d.address, kApart.plain);
}

TEST(Arguments, ProblemsThatTheLibraryCannotExpressAreRefused) {
  const Result<op::Gemm> narrowed = gemm(*parse_problem("dtype=f64 out=f16 m=4 n=4 k=4"), kApart, kGpu);
  ASSERT_FALSE(narrowed);
  EXPECT_THAT(narrowed.reason(), HasSubstr("is f16, which is not supported with f64"));
}

TEST(ReadProblems, SkipsCommentsAndNamesTheMalformedLine) {
  std::istringstream file("# a comment\n\ndtype=f32 m=1 n=1 k=1  # the smallest\n");
  const std::vector<Problem> problems = read_problems(file, "list.txt");
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].line, "dtype=f32 m=1 n=1 k=1");

  const auto error_of = [](const char* text) -> std::string {
    std::istringstream wrong(text);
    try {
      read_problems(wrong, "list.txt");
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(error_of("dtype=f32 m=1 n=1 k=1\ndtype=f32 m=1 n=1\n"), HasSubstr("list.txt:2: k is missing"));
  EXPECT_THAT(error_of("id=A dtype=f32 m=1 n=1 k=1\nid=A dtype=f32 m=1 n=1 k=2\n"), HasSubstr("list.txt:2: id \"A\""));
}

TEST(ReadProblems, FilesOfTheProjectDescribeValidProblems) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TILEWRIGHT_SOURCE_DIR "/bench/problems")) {
    std::ifstream file(entry.path());
    for (const Problem& problem : read_problems(file, entry.path())) {
      const Result<op::Gemm> call = gemm(problem, kApart, kGpu);
      const bool may_lack = problem.batch != 1 || problem.dtype == DType::e4m3;
      EXPECT_TRUE(call || may_lack) << problem.line << ": " << (call ? "" : call.reason());
    }
    ++files;
  }
  EXPECT_GE(files, 3);
}

}  // namespace
}  // namespace tilewright::bench
