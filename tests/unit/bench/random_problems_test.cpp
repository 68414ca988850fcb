// Random problems: that they are reproducible, within their limits, and cover what they should; their classes.
#include "bench/random_problems.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "bench/arguments.hpp"
#include "bench/random_class.hpp"

namespace tilewright::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kFar = std::uint64_t{1} << 40;
constexpr Addresses kApart{.a = kFar,
                           .b = 2 * kFar,
                           .d = 3 * kFar,
                           .plain = 10 * kFar,
                           .c = 4 * kFar,
                           .product = 5 * kFar,
                           .tensors = {6 * kFar, 7 * kFar, 8 * kFar, 9 * kFar}};
constexpr op::MemoryDevice kGpu{op::MemoryDevice::Kind::cuda, 1};

const std::vector<Problem>& many() {
  static const std::vector<Problem> kProblems = random_problems(1, 2000);
  return kProblems;
}

std::string class_of(const std::string& line) { return std::string(random_class(*parse_problem(line)).name); }

/// These lines may change only together with the judged results, because an id must always name the same problem.
TEST(RandomProblems, AreTheSameOnEveryPlatform) {
  std::vector<std::string> lines;
  for (const Problem& problem : random_problems(17, 4)) lines.push_back(problem.line);
  EXPECT_THAT(lines, ElementsAre("id=R17-000 dtype=s8 batch=613 m=128 n=256 k=224 b=col",
                                 "id=R17-001 dtype=bf16 m=256 n=192 k=34912 lda=34928 ldd=200",
                                 "id=R17-002 dtype=bf16 m=8 n=320 k=22784 a=col",
                                 "id=R17-003 dtype=f32 m=24 n=3072 k=512 b=col"));
  EXPECT_EQ(random_problem(100, 41).line, "id=R100-041 dtype=bf16 batch=6 m=384 n=114 k=320 b=col ldb=448 ldd=370");
}

/// The 64-bit FNV-1a hash of 2000 lines, for what the few lines above do not show.
TEST(RandomProblems, ManyAreTheSameOnEveryPlatform) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const Problem& problem : many()) {
    for (const char c : problem.line + "\n") hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  EXPECT_EQ(hash, 0x1b74cd3a48380beeu) << fmt::format("{:#x}", hash);
}

TEST(RandomProblems, OfOtherSeedsAndNumbersDiffer) {
  std::set<std::string> lines;
  for (std::uint64_t seed = 99; seed < 103; ++seed) {
    for (Problem problem : random_problems(seed, 50)) lines.insert(problem.line.substr(problem.line.find(' ')));
  }
  EXPECT_EQ(lines.size(), 200u);
}

TEST(RandomProblems, AreOrdinaryLinesWithinTheLimits) {
  for (const Problem& problem : many()) {
    const Result<Problem> again = parse_problem(problem.line);
    ASSERT_TRUE(again) << problem.line << ": " << again.reason();
    EXPECT_EQ(*again, problem);
    const double bytes =
        static_cast<double>(stored_a(problem).bytes() + stored_b(problem).bytes() + stored_d(problem).bytes());
    EXPECT_LE(bytes, kMaxRandomBytes) << problem.line;
    EXPECT_GE(bytes, kMinRandomBytes) << problem.line;
    EXPECT_GE(operations(problem), kMinRandomOperations) << problem.line;
    EXPECT_LE(operations(problem), kMaxRandomMs * 1e9 * 1300.0) << problem.line;
    const Result<op::Gemm> call = gemm(problem, kApart, kGpu);
    EXPECT_TRUE(call) << problem.line << ": " << call.reason();
  }
}

/// cuBLASLt needs K-major operands and rows at multiples of 16 bytes for 8-bit types.
TEST(RandomProblems, OfEightBitTypesSuitCublasLt) {
  int count = 0;
  for (const Problem& problem : many()) {
    if (bytes(problem.dtype) != 1) continue;
    ++count;
    EXPECT_EQ(problem.a, op::MatrixLayout::row_major) << problem.line;
    EXPECT_EQ(problem.b, op::MatrixLayout::column_major) << problem.line;
    EXPECT_EQ(problem.d, op::MatrixLayout::row_major) << problem.line;
    EXPECT_TRUE(has_aligned_rows(problem)) << problem.line;
    EXPECT_EQ(problem.n % 16, 0) << problem.line;
    EXPECT_EQ(problem.k % 16, 0) << problem.line;
    EXPECT_NE(problem.dtype, DType::e5m2) << problem.line;
  }
  EXPECT_GT(count, 200);
}

TEST(RandomProblems, CoverTypesLayoutsPaddingBatchesEpiloguesAndClasses) {
  std::map<std::string, int> found;
  for (const Problem& problem : many()) {
    ++found[std::string("type ") + std::string(name(problem.dtype)) + std::string(op::name(problem.math))];
    ++found[fmt::format("layouts {} {}", problem.a == op::MatrixLayout::row_major,
                        problem.b == op::MatrixLayout::row_major)];
    ++found[std::string("class ") + std::string(random_class(problem).name)];
    if (problem.lda != 0) ++found["padded"];
    if (problem.d == op::MatrixLayout::column_major) ++found["d=col"];
    if (problem.batch > 1000) ++found["thousands"];
    if (problem.m == 1) ++found["m=1"];
    if (problem.m > 16384 || problem.n > 16384) ++found["long"];
    if (problem.k > 32768) ++found["deep"];
    if (problem.epilogue != nullptr) ++found[std::string("epilogue ") + std::string(problem.epilogue->name)];
  }
  for (const RandomClass& one : random_classes())
    EXPECT_GE(found[std::string("class ") + std::string(one.name)], 20) << one.name;
  for (const EpilogueCase& one : epilogue_cases())
    EXPECT_GE(found[std::string("epilogue ") + std::string(one.name)], 1) << one.name;
  for (const char* type :
       {"bf16multiply_add", "f16multiply_add", "e4m3multiply_add", "s8multiply_add", "e4m3multiply_add_fast_accumulate",
        "f32multiply_add_tf32", "f32multiply_add", "f64multiply_add"})
    EXPECT_GE(found[std::string("type ") + type], 20) << type;
  for (const char* property : {"padded", "d=col", "thousands", "m=1", "long", "deep", "layouts true true",
                               "layouts true false", "layouts false true", "layouts false false"})
    EXPECT_GE(found[property], 10) << property;
}

TEST(RandomProblems, AFilterSelectsProblemsWithoutChangingThem) {
  const auto all_are = [](const RandomFilter& filter, const auto& has) {
    const std::vector<Problem> chosen = random_problems(5, 20, filter);
    EXPECT_EQ(chosen.size(), 20u);
    for (const Problem& problem : chosen) {
      EXPECT_TRUE(has(problem)) << problem.line;
      EXPECT_EQ(random_problem(5, std::stoi(problem.id.substr(problem.id.find('-') + 1))), problem);
    }
  };
  all_are({.aligned = true}, [](const Problem& one) { return has_aligned_rows(one); });
  all_are({.aligned = false}, [](const Problem& one) { return !has_aligned_rows(one); });
  all_are({.classes = {"odd_rows"}}, [](const Problem& one) { return has_odd_rows(one) && has_aligned_rows(one); });
  all_are({.types = {"f32", "f64"}, .least_m = 16}, [](const Problem& one) {
    return one.m >= 16 && one.math == op::MathOperation::multiply_add &&
           (one.dtype == DType::f32 || one.dtype == DType::f64);
  });
  EXPECT_EQ(random_problems(5, 3, {.types = {"tf32"}})[0].math, op::MathOperation::multiply_add_tf32);
}

TEST(RandomProblems, AFilterThatIsUnknownOrEmptyIsRefused) {
  const auto error_of = [](const RandomFilter& filter) -> std::string {
    try {
      random_problems(5, 20, filter);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(error_of({.types = {"e5m2"}}), HasSubstr("no random problem has the type \"e5m2\""));
  EXPECT_THAT(error_of({.classes = {"huge"}}), HasSubstr("no random problem has the class \"huge\""));
  EXPECT_THAT(error_of({.aligned = false, .types = {"s8"}}),
              HasSubstr("only 0 of the first 100000 problems of seed 5 pass the filter, 20 are wanted"));
}

TEST(RandomDraws, AreSeedsWithCounts) {
  const std::vector<RandomDraw> draws = *parse_random_draws("17:100,18:5");
  ASSERT_EQ(draws.size(), 2u);
  EXPECT_EQ(draws[0].seed, 17u);
  EXPECT_EQ(draws[0].count, 100);
  EXPECT_EQ(draws[1].seed, 18u);
  EXPECT_EQ(draws[1].count, 5);
  for (const char* wrong : {"", "17", "17:", ":5", "17:0", "17:5x", "17:5,", "-1:5", "17;5"})
    EXPECT_THAT(parse_random_draws(wrong).reason(), HasSubstr("must be SEED:COUNT")) << wrong;
  EXPECT_THAT(parse_random_draws("1:2,1:3").reason(), HasSubstr("seed 1 is given twice"));
}

TEST(RandomClass, IsTheFirstWhoseRuleAProblemMeets) {
  EXPECT_EQ(class_of("dtype=bf16 m=8 n=64 k=64 epilogue=bias"), "epilogue");
  EXPECT_EQ(class_of("dtype=e4m3 out=bf16 m=8 n=64 k=64 b=col"), "fp8");
  EXPECT_EQ(class_of("dtype=e5m2 out=bf16 m=8 n=64 k=64 b=col"), "fp8");
  EXPECT_EQ(class_of("dtype=s8 m=8 n=64 k=64 b=col"), "s8");
  EXPECT_EQ(class_of("dtype=f64 m=8 n=65 k=64"), "f64");
  EXPECT_EQ(class_of("dtype=tf32 m=8 n=65 k=64"), "tf32");
  EXPECT_EQ(class_of("dtype=f32 batch=3 m=8 n=65 k=64"), "f32");
  EXPECT_EQ(class_of("dtype=bf16 batch=3 m=8 n=65 k=64"), "batched");
  EXPECT_EQ(class_of("dtype=bf16 m=4096 n=4097 k=4096"), "unaligned");
  EXPECT_EQ(class_of("dtype=bf16 m=4096 n=4096 k=4100 b=col"), "unaligned");
  EXPECT_EQ(class_of("dtype=bf16 m=4096 n=4096 k=4100 lda=4104 a=row"), "odd_rows");
  EXPECT_EQ(class_of("dtype=bf16 m=4096 n=4096 k=4104 b=col"), "odd_rows");
  EXPECT_EQ(class_of("dtype=bf16 m=4096 n=4096 k=4104 a=col b=col"), "odd_rows");
  EXPECT_EQ(class_of("dtype=bf16 m=4096 n=4104 k=4096 a=col"), "large");  // rows of B are MN-major
  EXPECT_EQ(class_of("dtype=bf16 m=128 n=4096 k=4096"), "decode");
  EXPECT_EQ(class_of("dtype=bf16 m=4096 n=128 k=512"), "decode");
  EXPECT_EQ(class_of("dtype=bf16 m=136 n=136 k=512"), "short_k");
  EXPECT_EQ(class_of("dtype=bf16 m=1408 n=1536 k=528"), "few_tiles");  // 11 x 12 tiles
  EXPECT_EQ(class_of("dtype=bf16 m=1416 n=1536 k=528"), "large");
}

TEST(RandomClass, EachIsInTheGuide) {
  std::ifstream file(TILEWRIGHT_SOURCE_DIR "/bench/README.md");
  const std::string guide(std::istreambuf_iterator<char>(file), {});
  for (const RandomClass& one : random_classes())
    EXPECT_THAT(guide, HasSubstr(fmt::format("| `{}` | {} |", one.name, one.title)));
  EXPECT_EQ(find_random_class("decode"), &random_classes()[9]);
  EXPECT_EQ(find_random_class("huge"), nullptr);
}

}  // namespace
}  // namespace tilewright::bench
