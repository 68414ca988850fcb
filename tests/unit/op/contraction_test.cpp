// Contractions: what is refused, how modes are classified, merged and ordered, and the reference against the
// definition.
#include "tilewright/op/contraction.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "tests/unit/op/direct_contraction.hpp"
#include "tests/unit/op/tensor_elements.hpp"
#include "tilewright/op/conv2d.hpp"
#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/op/fill.hpp"
#include "tilewright/op/problem.hpp"

namespace tilewright::op {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kApart = std::uint64_t{1} << 40;

/// Packed tensors of f32, the last mode contiguous.
Contraction contraction_of(std::string_view expression, const Dims& a, const Dims& b, const Dims& d) {
  const auto modes = parse_contraction(expression).value_or_throw();
  Contraction contraction;
  contraction.a = packed_tensor(kApart, DType::f32, a);
  contraction.b = packed_tensor(2 * kApart, DType::f32, b);
  contraction.d = packed_tensor(3 * kApart, DType::f32, d);
  contraction.modes_a = modes[0];
  contraction.modes_b = modes[1];
  contraction.modes_d = modes[2];
  return contraction;
}

std::string reason(const Contraction& contraction) {
  const Support valid = validate(contraction);
  return valid ? std::string() : valid.reason();
}

TEST(Contraction, ExpressionsAreParsedAsInAnEinsum) {
  EXPECT_THAT(*parse_contraction("ab, bc -> ac"), testing::ElementsAre("ab", "bc", "ac"));
  EXPECT_THAT(*parse_contraction("cb,ba"), testing::ElementsAre("cb", "ba", "ac")) << "in alphabetical order";
  EXPECT_THAT(*parse_contraction("a,a"), testing::ElementsAre("a", "a", ""));
  EXPECT_THAT(parse_contraction("ab->ba").reason(), HasSubstr("it has no comma"));
  EXPECT_THAT(parse_contraction("a,b,c->abc").reason(), HasSubstr("more than two operands"));
  EXPECT_THAT(parse_contraction("a.,b->a").reason(), HasSubstr("'.' is not a letter"));
}

TEST(Contraction, RefusesWithModesAndNumbers) {
  const Contraction valid = contraction_of("abc,cd->abd", {2, 3, 4}, {4, 5}, {2, 3, 5});
  EXPECT_EQ(reason(valid), "");
  const auto refused = [&](const auto& change) {
    Contraction changed = valid;
    change(changed);
    return reason(changed);
  };
  EXPECT_EQ(refused([](Contraction& c) { c.b.shape[0] = 7; }), "mode 'c' has extent 4 in A, but 7 in B");
  EXPECT_EQ(refused([](Contraction& c) { c.d.shape[1] = 2; }), "mode 'b' has extent 3 in A, but 2 in D");
  EXPECT_EQ(refused([](Contraction& c) { c.modes_d = "abx"; }), "D has the mode 'x', but neither A nor B has it");
  EXPECT_THAT(refused([](Contraction& c) { c.modes_a = "aac"; }), HasSubstr("A has the mode 'a' twice in 'aac'"));
  EXPECT_EQ(refused([](Contraction& c) { c.modes_b = "cde"; }), "B has 3 modes 'cde', but its shape is (4,5)");
  EXPECT_THAT(refused([](Contraction& c) { c.modes_b = "c1"; }), HasSubstr("a mode must be a letter, got '1'"));
  EXPECT_EQ(refused([](Contraction& c) {
              c.d.stride = {15, 4, 1};
            }),
            "elements of D of shape (2,3,5) overlap: the stride 4 must exceed 4, which the modes before it reach");
  EXPECT_THAT(refused([](Contraction& c) { c.d.dtype = DType::f16, c.a.dtype = DType::f64; }), HasSubstr("f64"));
  EXPECT_THAT(refused([](Contraction& c) { c.epilogue = *parse_epilogue("D = acc + row_index", DType::f32); }),
              HasSubstr("the index of a row"));
  EXPECT_THAT(refused([](Contraction& c) { c.beta = 1.0; }), HasSubstr("C must have the shape (2,3,5) of D, got ()"));
  EXPECT_THAT(refused([](Contraction& c) { c.b.address = c.d.address; }), HasSubstr("overlap"));
  EXPECT_TRUE(measurable(valid));
}

TEST(Contraction, ModesAreClassifiedMergedAndOrdered) {
  const auto classes = [](std::string_view expression, const Dims& a, const Dims& b, const Dims& d) {
    return classes_text(contraction_of(expression, a, b, d));
  };
  EXPECT_EQ(classes("ab,bc->ac", {2, 3}, {3, 4}, {2, 4}), "m = a, n = c, k = b, batch = 1");
  EXPECT_EQ(classes("abcd,dcef->abef", {2, 3, 4, 5}, {5, 4, 6, 7}, {2, 3, 6, 7}),
            "m = (ba), n = (fe), k = d*c, batch = 1")
      << "c and d follow each other in A only";
  EXPECT_EQ(classes("abcd,cdef->abef", {2, 3, 4, 5}, {4, 5, 6, 7}, {2, 3, 6, 7}),
            "m = (ba), n = (fe), k = (dc), batch = 1");
  EXPECT_EQ(classes("bmk,bkn->bmn", {2, 3, 4}, {2, 4, 5}, {2, 3, 5}), "m = m, n = n, k = k, batch = b");
  EXPECT_EQ(classes("xmyk,yxkn->xymn", {2, 3, 6, 4}, {6, 2, 4, 5}, {2, 6, 3, 5}), "m = m, n = n, k = k, batch = y*x");
  EXPECT_EQ(classes("k,k->", {4}, {4}, {}), "m = 1, n = 1, k = k, batch = 1");
  EXPECT_EQ(classes("mk,bkn->bmn", {8, 3}, {4, 3, 32}, {4, 8, 32}), "m = m, n = n, k = k, batch = b")
      << "n and b do not follow each other, so that B and D are batches, of which A has one matrix";
  EXPECT_EQ(classes("mk,bkn->bmn", {8, 3}, {4, 3, 31}, {4, 8, 31}), "m = m, n = n*b, k = k, batch = 1");
  EXPECT_EQ(classes("ak,b->ab", {2, 3}, {4}, {2, 4}), "m = a, n = b, k = k, batch = 1") << "only A has k";
}

TEST(Contraction, ContractionsThatFoldAreStridedGemms) {
  for (const auto& folds : {contraction_of("abcd,cdef->abef", {2, 3, 4, 5}, {4, 5, 6, 7}, {2, 3, 6, 7}),
                            contraction_of("bmk,bkn->bmn", {2, 3, 4}, {2, 4, 5}, {2, 3, 5}),
                            contraction_of("mk,kn->nm", {3, 4}, {4, 5}, {5, 3}),
                            contraction_of("mk,bkn->bmn", {3, 4}, {2, 4, 64}, {2, 3, 64})}) {
    ASSERT_EQ(reason(folds), "");
    const GemmView gemm = view(folds);
    EXPECT_TRUE(gemm.check_strided("a family")) << to_string(folds);
    EXPECT_TRUE(validate(to_gemm(gemm))) << to_string(folds) << ": " << validate(to_gemm(gemm)).reason();
  }
  const Contraction folded = contraction_of("abcd,dcef->abef", {2, 3, 4, 5}, {5, 4, 6, 8}, {2, 3, 6, 8});
  const GemmView gemm = view(folded);
  EXPECT_EQ(gemm.a.access, OperandAccess::strided) << "k = d*c is one stride in A";
  EXPECT_EQ(gemm.b.access, OperandAccess::folded);
  const GemmSignature signature = describe(gemm);
  EXPECT_EQ(signature.b.folded_modes, 2);
  EXPECT_EQ(signature.b.layout, MatrixLayout::row_major) << "ef is contiguous in B";
  EXPECT_EQ(signature.b.alignment, 4);
  EXPECT_THAT(to_string(Signature(signature)), HasSubstr("b=f32:row:4:folded_2"));
}

TEST(Contraction, VectorsDoNotCrossTheEndOfTheFirstCoordinate) {
  // A is (m, k) with k = d*c, and c has another stride than 6 elements.
  const auto alignment = [](std::int64_t fast, std::int64_t stride) {
    Contraction contraction = contraction_of("mcd,dcn->mn", {3, 4, fast}, {fast, 4, 8}, {3, 8});
    contraction.a.stride = {64 * stride, stride, 1};
    return describe(view(contraction)).a.alignment;
  };
  EXPECT_EQ(alignment(8, 16), 4);
  EXPECT_EQ(alignment(6, 16), 2);
  EXPECT_EQ(alignment(8, 10), 2);
  EXPECT_EQ(alignment(5, 16), 1);
}

TEST(Contraction, VectorsOfAWrittenTensorDoNotReachBehindItsLines) {
  // Neither the modes x and y of the batch nor the lines of 36 elements, 40 apart, are one stride.
  Contraction contraction = contraction_of("xmyk,yxkn->xymn", {2, 3, 6, 8}, {6, 2, 8, 36}, {2, 6, 3, 36});
  for (Tensor Contraction::*const tensor : {&Contraction::a, &Contraction::b, &Contraction::d})
    (contraction.*tensor).dtype = DType::f16;
  contraction.b.stride = {2 * 8 * 40, 8 * 40, 40, 1};
  contraction.d.stride = {6 * 3 * 40 + 8, 3 * 40, 40, 1};
  const GemmView gemm = view(contraction);
  ASSERT_EQ(gemm.b.access, OperandAccess::folded);
  ASSERT_EQ(gemm.d.access, OperandAccess::folded);
  EXPECT_EQ(describe(gemm).b.alignment, 8) << "elements between the lines may be read";
  EXPECT_EQ(describe(gemm).d.alignment, 4) << "but not written";
}

/// The tensors of a contraction on the host, with integers in the inputs.
class OnHost {
 public:
  explicit OnHost(const Contraction& shape) : contraction(shape) {
    std::uint64_t seed = 1;
    for (const Operand& operand : operands(contraction)) {
      const auto size = static_cast<std::size_t>(span_bytes(*operand.tensor));
      auto& memory = memory_.emplace_back(size + 16, std::byte{0xff});
      operand.tensor->address = reinterpret_cast<std::uint64_t>(memory.data());
      const Tensor& tensor = *operand.tensor;
      const Tensor flat = matrix(tensor.address, tensor.dtype, 1, span_bytes(tensor) / bytes(tensor.dtype));
      if (!is_written(operand.access)) fill_integers(flat, -3, 3, seed++);
    }
  }
  Contraction contraction;

 private:
  std::vector<std::vector<std::byte>> memory_;
};

void expect_reference_is_definition(const Contraction& shape) {
  SCOPED_TRACE(to_string(shape) + " " + classes_text(shape));
  const OnHost host(shape);
  ASSERT_EQ(reason(host.contraction), "");
  const std::vector<double> sums = direct_sums(host.contraction);
  reference(Problem(host.contraction));
  const Contraction& at = host.contraction;
  for_each_element(at.d, [&](std::size_t index, std::int64_t offset) {
    const double source = at.beta == 0.0 ? 0.0 : at.beta * load_at(at.c, offset);
    ASSERT_EQ(load_at(at.d, offset), round_to(at.d.dtype, at.alpha * sums[index] + source)) << "element " << index;
  });
}

TEST(Contraction, TheReferenceIsTheDefinition) {
  for (const std::string_view text : tccg_contractions()) {
    expect_reference_is_definition(tccg_contraction(text, DType::f32));
    if (testing::Test::HasFailure()) return;
  }
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    expect_reference_is_definition(random_contraction(seed, DType::f32));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Contraction, KeysDependOnTheModes) {
  const Contraction one = contraction_of("mcd,dcn->mn", {3, 4, 6}, {6, 4, 8}, {3, 8});
  Contraction other = one;
  other.b.stride = {8, 64, 1};
  EXPECT_EQ(describe(Problem(one)), describe(Problem(other)));
  EXPECT_FALSE(key(Problem(one)) == key(Problem(other)));
  EXPECT_THAT(problem_class(Problem(one)), HasSubstr("3x8x24 B (6,4):(32,8)x(8):(1) batch ():()"));
}

TEST(Contraction, KeysOfFoldedOperandsDependOnAddresses) {
  Contraction one = contraction_of("bac,acd->bd", {4, 8, 6}, {8, 6, 8}, {4, 8});
  one.a.stride = {1, 4, 32};
  one.b.stride = {48, 8, 1};
  Contraction other = one;
  EXPECT_TRUE(key(Problem(one)) == key(Problem(other)));
  for (Tensor Contraction::*const tensor : {&Contraction::a, &Contraction::b, &Contraction::d}) {
    other = one;
    (other.*tensor).address += 16;
    EXPECT_TRUE(key(Problem(one)) == key(Problem(other)));
    (other.*tensor).address += 4;
    EXPECT_FALSE(key(Problem(one)) == key(Problem(other)));
  }
}

TEST(Contraction, TensorsOfTheEpilogueAreBroadcastByClass) {
  Contraction contraction = contraction_of("abk,kcd->acbd", {2, 3, 4}, {4, 5, 6}, {2, 5, 3, 6});
  contraction.epilogue = *parse_epilogue("D = acc + row(bias)", DType::f32);
  const auto with = [&](const Dims& shape) {
    contraction.tensors = {{"bias", packed_tensor(5 * kApart, DType::f32, shape)}};
    return reason(contraction);
  };
  EXPECT_EQ(with({1, 5, 1, 6}), "");
  EXPECT_EQ(view(contraction).tensor("bias").shape, (Dims{1, 30}));
  EXPECT_THAT(with({1, 5, 1, 1}), HasSubstr("'bias' must be broadcast along all modes of n or none"));
  EXPECT_EQ(with({1, 5, 1, 7}), "'bias' must have extent 6 or 1 in mode 'd', got 7");
  EXPECT_THAT(with({2, 1, 3, 1}), HasSubstr("'bias' must be (1,30), got (6,1)"));
}

TEST(Contraction, AResidualOfAFoldedDTakesThePlaceOfC) {
  Contraction contraction = contraction_of("gack,gbdk->gabcd", {3, 2, 3, 4}, {3, 5, 6, 4}, {3, 2, 5, 3, 6});
  contraction.epilogue = *parse_epilogue("D = relu(acc + residual) * 2", DType::f32);
  const auto with = [&](const Dims& shape) {
    contraction.tensors = {{"residual", packed_tensor(5 * kApart, DType::f32, shape)}};
    return reason(contraction);
  };
  EXPECT_EQ(with({3, 2, 5, 3, 6}), "");
  GemmView computed = view(contraction);
  EXPECT_TRUE(computed.reads_source && computed.has_source);
  EXPECT_TRUE(computed.tensors.empty());
  EXPECT_TRUE(computed.epilogue->reads_source());
  EXPECT_EQ(computed.c.tensor.address, 5 * kApart);
  EXPECT_EQ(computed.c.access, OperandAccess::folded);
  const Contraction other = [&] {
    Contraction changed = contraction;
    changed.tensors[0].tensor.stride = {180, 1, 2, 10, 30};
    return changed;
  }();
  EXPECT_FALSE(key(Problem(contraction)) == key(Problem(other)));
  EXPECT_EQ(with({1, 2, 5, 3, 6}), "") << "it is repeated along modes of the batch";
  EXPECT_EQ(with_folded_tensor_as_source(contraction)->c.stride[0], 0);
  EXPECT_THAT(with({3, 2, 1, 3, 6}), HasSubstr("'residual' must be broadcast along all modes of n or none"));
  EXPECT_EQ(with({3, 2, 5, 3, 6}), "");
  contraction.tensors[0].tensor.address = contraction.d.address;
  EXPECT_EQ(reason(contraction), "") << "it may be D";
  contraction.epilogue = *parse_epilogue("D = acc * factor + beta * C", DType::f32);
  contraction.tensors[0] = {"factor", packed_tensor(5 * kApart, DType::f32, {3, 2, 5, 3, 6})};
  EXPECT_THAT(reason(contraction), HasSubstr("'factor' must be broadcast along all modes of m or none"));
}

}  // namespace
}  // namespace tilewright::op
