// Problem files: what a line means, what is refused, and that the files we ship can be read.
#include "bench/problem.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

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

TEST(ParseProblem, EveryFieldCanBeSaid) {
  const Problem problem =
      *parse_problem("dtype=f32 m=1 n=2 k=3 a=col d=col out=f16 acc=f32 math=multiply_add_fast_f32 kernel=sm80");
  EXPECT_EQ(problem.a, op::MatrixLayout::column_major);
  EXPECT_EQ(problem.d, op::MatrixLayout::column_major);
  EXPECT_EQ(problem.out, DType::f16);
  EXPECT_EQ(problem.math, op::MathOperation::multiply_add_fast_f32);
  EXPECT_EQ(problem.kernel, "sm80");
}

TEST(ParseProblem, Tf32IsF32WithItsMath) {
  const Problem problem = *parse_problem("dtype=tf32 m=1 n=1 k=1");
  EXPECT_EQ(problem.dtype, DType::f32);
  EXPECT_EQ(problem.out, DType::f32);
  EXPECT_EQ(problem.math, op::MathOperation::multiply_add_tf32);
}

TEST(ParseProblem, SaysWhatIsWrong) {
  const auto reason = [](const char* line) { return parse_problem(line).reason(); };
  EXPECT_THAT(reason("m=1 n=1 k=1"), HasSubstr("dtype is missing"));
  EXPECT_THAT(reason("dtype=f32 m=1 n=1"), HasSubstr("k is missing"));
  EXPECT_THAT(reason("dtype=f33 m=1 n=1 k=1"), HasSubstr("f33"));
  EXPECT_THAT(reason("dtype=f32 m=0 n=1 k=1"), HasSubstr("m must be a positive number"));
  EXPECT_THAT(reason("dtype=f32 m=1x n=1 k=1"), HasSubstr("1x"));
  EXPECT_THAT(reason("dtype=f32 m=99999999999999999999 n=1 k=1"), HasSubstr("m must be"));
  EXPECT_THAT(reason("dtype=f32 m=1 m=2 n=1 k=1"), HasSubstr("twice"));
  EXPECT_THAT(reason("dtype=f32 m=1 n=1 k=1 b=diagonal"), HasSubstr("row or col"));
  EXPECT_THAT(reason("dtype=f32 m=1 n=1 k=1 speed=9"), HasSubstr("unknown key"));
  EXPECT_THAT(reason("dtype=f32 m=1 n=1 k=1 math=magic"), HasSubstr("magic"));
  EXPECT_THAT(reason("fast"), HasSubstr("key=value"));
}

TEST(ReadProblems, SkipsCommentsAndNamesTheWrongLine) {
  std::istringstream file("# a comment\n\ndtype=f32 m=1 n=1 k=1  # the smallest\n");
  const std::vector<Problem> problems = read_problems(file, "list.txt");
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].line, "dtype=f32 m=1 n=1 k=1");

  std::istringstream wrong("dtype=f32 m=1 n=1 k=1\ndtype=f32 m=1 n=1\n");
  try {
    read_problems(wrong, "list.txt");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("list.txt:2: k is missing"));
  }
}

TEST(ReadProblems, FilesOfTheProjectDescribeValidProblems) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TILEWRIGHT_SOURCE_DIR "/bench/problems")) {
    std::ifstream file(entry.path());
    for (const Problem& problem : read_problems(file, entry.path())) {
      constexpr std::uint64_t kFar = std::uint64_t{1} << 40;
      const Support valid = op::validate(gemm(problem, kFar, 2 * kFar, 3 * kFar, 0));
      EXPECT_TRUE(valid) << problem.line << ": " << valid.reason();
    }
    ++files;
  }
  EXPECT_GE(files, 3);
}

}  // namespace
}  // namespace tilewright::bench
