// validate() and describe() of GEMMs.
#include "tilewright/op/gemm.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tilewright/op/problem.hpp"

namespace tilewright::op {
namespace {

constexpr std::uint64_t kA = 0x10000, kB = 0x20000, kC = 0x30000, kD = 0x40000;

Gemm problem(std::int64_t m = 16, std::int64_t n = 24, std::int64_t k = 32, DType type = DType::f32) {
  Gemm gemm;
  gemm.a = matrix(kA, type, m, k);
  gemm.b = matrix(kB, type, k, n);
  gemm.c = matrix(kC, type, m, n);
  gemm.d = matrix(kD, type, m, n);
  gemm.accumulator = default_accumulator(type);
  gemm.epilogue = linear_combination(default_compute(gemm.accumulator, type));
  return gemm;
}

TEST(Validate, AcceptsEverySupportedType) {
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16})
    EXPECT_TRUE(validate(problem(16, 24, 32, type)));
  for (const DType type : {DType::s8, DType::u8}) {
    for (const DType out : {DType::s32, DType::s8, DType::f32}) {
      Gemm gemm = problem(16, 24, 32, type);
      gemm.c.dtype = gemm.d.dtype = out;
      gemm.epilogue = linear_combination(default_compute(DType::s32, out));
      EXPECT_TRUE(validate(gemm)) << validate(gemm).reason();
    }
  }
  Gemm half = problem(16, 24, 32, DType::f16);
  half.accumulator = DType::f16;
  EXPECT_TRUE(validate(half));
}

TEST(Validate, EightBitFloatsMixAndAreStoredInAnyFloat) {
  using enum DType;
  for (const DType a : {e4m3, e5m2}) {
    for (const DType b : {e4m3, e5m2}) {
      for (const DType out : {f32, f16, bf16, e4m3, e5m2}) {
        Gemm gemm = problem(16, 24, 32, a);
        gemm.b.dtype = b;
        gemm.d.dtype = out;
        for (const DType source : {out, bf16}) {
          gemm.c.dtype = source;
          gemm.beta = 1.0;
          EXPECT_TRUE(validate(gemm)) << validate(gemm).reason();
        }
        EXPECT_EQ(describe(gemm).b.element, b);
        gemm.math = MathOperation::multiply_add_fast_accumulate;
        EXPECT_TRUE(validate(gemm)) << validate(gemm).reason();
      }
    }
  }
  EXPECT_EQ(default_accumulator(e5m2), f32);
}

TEST(Validate, ScalarsThatTheComputeTypeCannotHoldAreRefused) {
  Gemm gemm = problem();
  gemm.alpha = 1e39;
  EXPECT_EQ(validate(gemm).reason(), "alpha is 1e+39, beyond the range of the epilogue's compute type f32");
  EXPECT_EQ(validate(gemm).refusal().code, RefusalCode::scalars);
  gemm.alpha = std::numeric_limits<float>::max();
  EXPECT_TRUE(validate(gemm));
  gemm.alpha = std::nextafter(gemm.alpha, 1e300);  // rounds to the greatest f32
  EXPECT_TRUE(validate(gemm));
  for (const double special : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    gemm.alpha = special;
    EXPECT_TRUE(validate(gemm)) << special;
  }
  gemm.alpha = 1.0;
  gemm.beta = -1e300;
  EXPECT_EQ(validate(gemm).reason(), "beta is -1e+300, beyond the range of the epilogue's compute type f32");

  Gemm leaky = problem();
  leaky.epilogue = linear_combination_generic(Activation::leaky_relu, DType::f32, 1e39);
  EXPECT_FALSE(validate(leaky));

  Gemm wide = problem(16, 24, 32, DType::f64);
  wide.alpha = wide.beta = 1e300;
  EXPECT_TRUE(validate(wide)) << validate(wide).reason();
}

TEST(Validate, EmptyProblemsNeedNoMemory) {
  Gemm gemm = problem(0, 24, 32);
  gemm.a.address = gemm.b.address = gemm.d.address = 0;
  EXPECT_TRUE(validate(gemm)) << validate(gemm).reason();
  Gemm no_k = problem(16, 24, 0);
  no_k.a.address = no_k.b.address = 0;
  EXPECT_TRUE(validate(no_k)) << validate(no_k).reason();
}

TEST(Validate, OperandsThatAreNotReadMayBeNull) {
  Gemm gemm = problem();
  gemm.c.address = 0;
  EXPECT_TRUE(validate(gemm));
  EXPECT_FALSE(reads_source(gemm));
  gemm.beta = 1.0;
  EXPECT_FALSE(validate(gemm));
  Gemm scaled = problem();
  scaled.alpha = 0.0;
  scaled.a.address = scaled.b.address = 0;
  EXPECT_TRUE(validate(scaled)) << validate(scaled).reason();
}

TEST(Validate, SourceMayBeTheDestination) {
  Gemm gemm = problem();
  gemm.beta = 1.0;
  gemm.c = gemm.d;
  EXPECT_TRUE(validate(gemm));
  gemm.c.address += 4;
  EXPECT_FALSE(validate(gemm));
}

Gemm batch_of(std::int64_t batch, std::int64_t m = 16, std::int64_t n = 24, std::int64_t k = 32) {
  constexpr std::uint64_t kApart = std::uint64_t{1} << 32;
  Gemm gemm = problem(m, n, k);
  std::uint64_t address = kApart;
  for (Tensor* tensor : {&gemm.a, &gemm.b, &gemm.c, &gemm.d}) {
    *tensor = batched(*tensor, batch);
    tensor->address = address;
    address += kApart;
  }
  return gemm;
}

TEST(Validate, BatchesAndBroadcastOperands) {
  Gemm gemm = batch_of(5);
  gemm.beta = 1.0;
  ASSERT_TRUE(validate(gemm)) << validate(gemm).reason();
  EXPECT_EQ(gemm.batch(), 5);
  EXPECT_EQ(operations(gemm), 5.0 * operations(problem()));
  for (Tensor Gemm::*input : {&Gemm::a, &Gemm::b, &Gemm::c}) {
    for (const Tensor& one : {slice(gemm.*input, 0), batched(slice(gemm.*input, 0), 1, 7),
                              batched(slice(gemm.*input, 0), 5, 0), batched(slice(gemm.*input, 0), 5, 3)}) {
      Gemm shared = gemm;
      shared.*input = one;
      EXPECT_TRUE(validate(shared)) << validate(shared).reason();
    }
  }
  gemm.c = gemm.d;
  EXPECT_TRUE(validate(gemm)) << "C may be identical to D";
  Gemm one = batch_of(1);
  one.beta = 1.0;
  one.c = slice(one.d, 0);
  EXPECT_TRUE(validate(one)) << "a batch of one matrix is that matrix";
  gemm.c = slice(gemm.d, 0);
  EXPECT_NE(validate(gemm).reason().find("overlaps"), std::string::npos) << "C is read after its D is written";
  Gemm none = batch_of(0);
  none.d.address = none.a.address = none.b.address = 0;
  EXPECT_TRUE(validate(none)) << validate(none).reason();
  EXPECT_TRUE(none.is_empty());
  EXPECT_TRUE(validate(batch_of(1)));
}

// A (rows, batch, columns) layout, like the heads of attention.
TEST(Validate, MatricesOfDMayInterleave) {
  Gemm gemm = batch_of(5);
  gemm.d.stride = {24, 5 * 24, 1};
  EXPECT_TRUE(validate(gemm)) << validate(gemm).reason();
  gemm.d.stride = {24, 5 * 24 - 1, 1};
  EXPECT_EQ(validate(gemm).reason(),
            "matrices of D overlap: the batch stride is 24 elements, but each matrix spans 1809");
  gemm.d = batched(matrix(kD, DType::f32, 1, 24, MatrixLayout::row_major, 1000), 5, 24);
  gemm.a = batched(matrix(kA, DType::f32, 1, 32), 5, 0);
  EXPECT_TRUE(validate(gemm)) << "with one row, the leading dimension is not used: " << validate(gemm).reason();
}

struct BadProblem {
  const char* says;
  std::function<void(Gemm&)> spoil;
};

TEST(Validate, RefusesWithTheNumber) {
  const BadProblem cases[] = {
      {"A is a null pointer", [](Gemm& g) { g.a.address = 0; }},
      {"D is a null pointer", [](Gemm& g) { g.d.address = 0; }},
      {"C is missing: beta is 1.5",
       [](Gemm& g) {
         g.beta = 1.5;
         g.c = {};
       }},
      {"columns of A and rows of B differ: (16,32) and (31,24)", [](Gemm& g) { g.b = matrix(kB, DType::f32, 31, 24); }},
      {"D must be (16,24), got (16,25)", [](Gemm& g) { g.d = matrix(kD, DType::f32, 16, 25); }},
      {"A has a negative extent -16", [](Gemm& g) { g.a.shape[0] = -16; }},
      {"A of shape (16,32) needs a leading dimension of at least 32, got 31", [](Gemm& g) { g.a.stride[0] = 31; }},
      {"A is f16 and B is f32: they must have the same type", [](Gemm& g) { g.a.dtype = DType::f16; }},
      {"A and B must be f64, f32, f16, bf16, e4m3, e5m2, s8 or u8",
       [](Gemm& g) { g.a.dtype = g.b.dtype = DType::s32; }},
      {"tf32, which is only a math type", [](Gemm& g) { g.a.dtype = DType::tf32; }},
      {"A is f32 and B is e4m3: they must have the same type", [](Gemm& g) { g.b.dtype = DType::e4m3; }},
      {"C is u4: must be f64, f32, f16, bf16, e4m3, e5m2, s32, s8 or u8", [](Gemm& g) { g.c.dtype = DType::u4; }},
      {"D is e5m2, which is not supported with s8",
       [](Gemm& g) {
         g = problem(16, 24, 32, DType::s8);
         g.d.dtype = DType::e5m2;
       }},
      {"e4m3 operands accumulate in f32 or f16, got s32",
       [](Gemm& g) {
         g = problem(16, 24, 32, DType::e4m3);
         g.accumulator = DType::s32;
       }},
      {"multiply_add_fast_accumulate takes e4m3 and e5m2 operands, got f32",
       [](Gemm& g) { g.math = MathOperation::multiply_add_fast_accumulate; }},
      {"multiply_add_fast_accumulate accumulates in f32, got f16",
       [](Gemm& g) {
         g = problem(16, 24, 32, DType::e5m2);
         g.accumulator = DType::f16;
         g.math = MathOperation::multiply_add_fast_accumulate;
       }},
      {"A is s4: elements must be whole bytes", [](Gemm& g) { g.a.dtype = DType::s4; }},
      {"D is b1: elements must be whole bytes", [](Gemm& g) { g.d.dtype = DType::b1; }},
      {"f32 operands accumulate in f32, got f16", [](Gemm& g) { g.accumulator = DType::f16; }},
      {"D is s32, which is not supported with f32", [](Gemm& g) { g.d.dtype = DType::s32; }},
      {"overlaps A", [](Gemm& g) { g.d.address = kA + 128; }},
      {"aligned to its element size of 4 bytes", [](Gemm& g) { g.b.address = kB + 2; }},
      {"A is on cuda:0, but D is on host",
       [](Gemm& g) {
         g.a.device = {MemoryDevice::Kind::cuda, 0};
       }},
      {"multiply_add_tf32 takes f32 operands, got f16",
       [](Gemm& g) {
         g = problem(16, 24, 32, DType::f16);
         g.math = MathOperation::multiply_add_tf32;
       }},
      {"m must be below 2^31, got 2147483648",
       [](Gemm& g) {
         g.a = matrix(kA, DType::f32, std::int64_t{1} << 31, 1);
         g.b = matrix(kB, DType::f32, 1, 1);
         g.d = matrix(kD, DType::f32, std::int64_t{1} << 31, 1);
       }},
      {"shapes of C and D differ",
       [](Gemm& g) {
         g.beta = 1.0;
         g.c = matrix(kC, DType::f32, 24, 16);
       }},
      {"B has a batch of 3, D a batch of 5: they must be equal, or B a single matrix",
       [](Gemm& g) {
         g = batch_of(5);
         g.b.shape[0] = 3;
       }},
      {"C has a batch of 5, D a batch of 1",
       [](Gemm& g) {
         g = batch_of(5);
         g.beta = 1.0;
         g.a = slice(g.a, 0);
         g.b = slice(g.b, 0);
         g.d = slice(g.d, 0);
       }},
      {"matrices of D overlap: the batch stride is 383 elements, but each matrix spans 384",
       [](Gemm& g) {
         g = batch_of(5);
         g.d.stride[0] = 383;
       }},
      {"matrices of D overlap: the batch stride is 0 elements",
       [](Gemm& g) {
         g = batch_of(5);
         g.d.stride[0] = 0;
       }},
      {"overlaps A",
       [](Gemm& g) {
         g = batch_of(5);
         g.d.address = g.a.address + 4 * 16 * 32 * 4;
       }},
      {"batch must be below 2^31, got 2147483648",
       [](Gemm& g) {
         g = batch_of(5);
         for (Tensor* t : {&g.a, &g.b, &g.c, &g.d}) t->shape[0] = std::int64_t{1} << 31;
       }},
      {"an f32 accumulator needs an epilogue", [](Gemm& g) { g.epilogue = linear_combination(DType::f64); }},
      {"alpha must be a 32-bit integer if the epilogue's compute type is s32, got 0.5",
       [](Gemm& g) {
         g = problem(16, 24, 32, DType::s8);
         g.c.dtype = g.d.dtype = DType::s32;
         g.epilogue = linear_combination(DType::s32);
         g.alpha = 0.5;
       }},
  };
  for (const BadProblem& bad : cases) {
    Gemm gemm = problem();
    bad.spoil(gemm);
    const Support support = validate(gemm);
    ASSERT_FALSE(support) << bad.says;
    EXPECT_NE(support.reason().find(bad.says), std::string::npos) << support.reason();
    EXPECT_EQ(support.reason().find('\n'), std::string::npos);
  }
}

struct BadDescription {
  const char* says;
  void (*spoil)(GemmSignature&);
};

TEST(Validate, SignaturesAreValidatedLikeProblems) {
  EXPECT_TRUE(validate(describe(problem())));
  const BadDescription cases[] = {
      {"alignment of A must be a power of two, got 3", [](GemmSignature& d) { d.a.alignment = 3; }},
      {"alignment of D must be a power of two, got 0", [](GemmSignature& d) { d.d.alignment = 0; }},
      {"alignment of C must be a power of two, got -4", [](GemmSignature& d) { d.c.alignment = -4; }},
      {"A is f32 and B is f16: they must have the same type", [](GemmSignature& d) { d.b.element = DType::f16; }},
      {"f32 operands accumulate in f32, got s32", [](GemmSignature& d) { d.accumulator = DType::s32; }},
      {"epilogue 'linear_combination' has no nodes", [](GemmSignature& d) { d.epilogue.nodes.clear(); }},
  };
  for (const BadDescription& bad : cases) {
    GemmSignature description = describe(problem());
    bad.spoil(description);
    EXPECT_EQ(validate(description).reason(), bad.says);
  }
}

TEST(Describe, AlignmentDividesPointerAndLeadingDimension) {
  Gemm gemm = problem(16, 24, 32, DType::f16);
  EXPECT_EQ(describe(gemm).a, (TensorSignature{DType::f16, MatrixLayout::row_major, 8}));
  gemm.a = matrix(kA, DType::f16, 16, 32, MatrixLayout::row_major, 36);
  EXPECT_EQ(describe(gemm).a.alignment, 4);
  gemm.a.address += 2;
  EXPECT_EQ(describe(gemm).a.alignment, 1);
  EXPECT_EQ(to_string(describe(problem()).b), "f32:row:4");
}

TEST(Describe, ACWithoutAnAddressIsAbsent) {
  Gemm gemm = problem();
  EXPECT_TRUE(describe(gemm).has_c);
  gemm.beta = 0.0;
  EXPECT_TRUE(describe(gemm).has_c) << "C is present, although this call does not read it";
  gemm.c = {};
  GemmSignature description = describe(gemm);
  EXPECT_FALSE(description.has_c);
  EXPECT_EQ(description.c, description.d);
  EXPECT_TRUE(validate(description)) << validate(description).reason();
  Gemm wide = problem(16, 24, 32, DType::f64);
  wide.beta = 0.0;
  wide.c = {};
  EXPECT_TRUE(validate(wide)) << "an absent C is not checked: " << validate(wide).reason();

  description.epilogue.nodes.resize(2);
  description.epilogue.nodes[0] = {.op = EpilogueOp::source, .label = {}};
  description.epilogue.nodes[1] = {.op = EpilogueOp::negate, .inputs = {0, -1}, .label = {}};
  EXPECT_EQ(validate(description).reason(), "the epilogue reads C without a gate such as beta, but has_c is false");
}

TEST(Describe, BatchStridesLimitTheAlignmentOfBatches) {
  Gemm gemm = batch_of(3);
  EXPECT_EQ(describe(gemm), describe(problem())) << "one kernel computes both";
  gemm.a.stride[0] += 2;
  EXPECT_EQ(describe(gemm).a.alignment, 2);
  EXPECT_EQ(describe(slice(gemm, 0)).a.alignment, 4);
  gemm.a.shape[0] = 1;
  EXPECT_EQ(describe(gemm).a.alignment, 4);
}

TEST(Describe, TransposingABatchKeepsItsMode) {
  const Gemm gemm = batch_of(3);
  EXPECT_EQ(transposed(transposed(gemm)), gemm);
  EXPECT_EQ(transposed(gemm).d.shape, (Dims{3, 24, 16}));
  EXPECT_EQ(slice(transposed(gemm), 2), transposed(slice(gemm, 2)));
}

TEST(Describe, TransposingTwiceIsTheIdentity) {
  Gemm gemm = problem();
  gemm.b = matrix(kB, DType::f32, 32, 24, MatrixLayout::column_major);
  EXPECT_EQ(transposed(transposed(gemm)), gemm);
  EXPECT_EQ(describe(transposed(gemm)), transposed(describe(gemm)));
  EXPECT_EQ(transposed(gemm).m(), gemm.n());
}

TEST(Gemm, HasADefaultTypeOfItsOutput) {
  for (const auto& [a, d] : {std::pair{DType::f64, DType::f64},
                             {DType::f16, DType::f16},
                             {DType::bf16, DType::bf16},
                             {DType::e4m3, DType::bf16},
                             {DType::e5m2, DType::bf16},
                             {DType::s8, DType::s32},
                             {DType::u8, DType::s32}}) {
    EXPECT_EQ(default_output(a), d) << name(a);
  }
}

Gemm pointer_arrays(std::int64_t batch) {
  Gemm gemm = problem();
  for (Tensor* tensor : {&gemm.a, &gemm.b, &gemm.c, &gemm.d}) *tensor = pointer_array(*tensor, tensor->address, batch);
  gemm.beta = 1.0;
  return gemm;
}

TEST(PointerArrays, AreDescribedApartFromStridedBatches) {
  const Gemm gemm = pointer_arrays(5);
  ASSERT_TRUE(validate(gemm)) << validate(gemm).reason();
  const GemmSignature signature = describe(gemm);
  EXPECT_EQ(to_string(signature.a), "f32:row:4:pointers");
  EXPECT_TRUE(signature.d.is_pointer_array);
  EXPECT_TRUE(transposed(signature).b.is_pointer_array);
  EXPECT_TRUE(validate(signature)) << validate(signature).reason();
  Gemm strided = gemm;
  strided.b = batched(matrix_at(gemm.b, kB), 5, 0);
  ASSERT_TRUE(validate(strided)) << validate(strided).reason();
  EXPECT_FALSE(same_code(Signature(signature), Signature(describe(strided))));
  EXPECT_NE(hash_value(Signature(signature)), hash_value(Signature(describe(strided))));
  EXPECT_FALSE(key(Problem(gemm)) == key(Problem(strided)));
  Gemm moved = gemm;
  moved.a.address += 8;
  EXPECT_TRUE(key(Problem(gemm)) == key(Problem(moved)));
  EXPECT_EQ(describe(transposed(gemm)), transposed(signature));
}

TEST(PointerArrays, AreRefusedWithTheNumber) {
  const auto reason = [](auto spoil) {
    Gemm gemm = pointer_arrays(5);
    spoil(gemm);
    return std::string(validate(gemm).reason());
  };
  EXPECT_EQ(reason([](Gemm& g) { g.a.address = 0; }), "A is a null pointer");
  EXPECT_EQ(reason([](Gemm& g) { g.b.address += 4; }),
            "B must be an array of pointers that is aligned to 8 bytes, got address 0x20004");
  EXPECT_EQ(reason([](Gemm& g) { g.b.shape[0] = 1; }), "B has 1 matrices, but D has 5: they must be equal");
  EXPECT_EQ(reason([](Gemm& g) { g.a.address = kD + 8; }), "D [0x40000, 0x40028) overlaps A [0x40008, 0x40030)");
  EXPECT_EQ(reason([](Gemm& g) { g.c.pointer_alignment = 2; }).find("the declared alignment of the matrices of C"), 0U);
  EXPECT_EQ(reason([](Gemm& g) { g.a.device = {MemoryDevice::Kind::cuda, 1}; }), "A is on cuda:1, but D is on host");
  Gemm in_place = pointer_arrays(5);
  in_place.c = in_place.d;
  EXPECT_TRUE(validate(in_place)) << validate(in_place).reason();
  Gemm unread = pointer_arrays(5);
  unread.alpha = 0.0;
  unread.a.address = unread.b.address = 0;
  EXPECT_TRUE(validate(unread)) << validate(unread).reason();
}

TEST(PointerArrays, KernelsOfStridedOperandsRefuseThem) {
  const Gemm gemm = pointer_arrays(5);
  EXPECT_EQ(view(gemm).check_strided("mine").reason(),
            "mine needs operands with a single stride per mode, but A is an array of pointers");
}

}  // namespace
}  // namespace tilewright::op
