// Auxiliary tensors of an epilogue: validation, signatures and transposition.
#include "tilewright/op/epilogue_tensors.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "tilewright/op/expression.hpp"

namespace tilewright::op {
namespace {

constexpr std::uint64_t kApart = std::uint64_t{1} << 30;

/// A 16 x 24 problem with D = acc + row(bias) + column(scale) + residual, and aux = acc.
Gemm problem() {
  Gemm gemm;
  gemm.a = matrix(1 * kApart, DType::f32, 16, 32);
  gemm.b = matrix(2 * kApart, DType::f32, 32, 24);
  gemm.d = matrix(3 * kApart, DType::f32, 16, 24);
  gemm.epilogue =
      make_epilogue("graph", DType::f32, acc() + row("bias") + column("scale") + full("residual"), {{"aux", acc()}})
          .value_or_throw();
  gemm.tensors = {{"aux", matrix(4 * kApart, DType::f16, 16, 24)},
                  {"bias", matrix(5 * kApart, DType::f32, 1, 24)},
                  {"scale", matrix(6 * kApart + 2, DType::f16, 16, 1)},
                  {"residual", matrix(7 * kApart, DType::bf16, 16, 24, MatrixLayout::column_major)}};
  return gemm;
}

TEST(EpilogueTensors, SignaturesAreInGraphOrder) {
  const Gemm gemm = problem();
  ASSERT_TRUE(validate(gemm)) << validate(gemm).reason();
  const GemmSignature description = describe(gemm);
  std::vector<std::string> texts;
  for (const EpilogueTensorSignature& each : description.tensors) texts.push_back(to_string(each));
  EXPECT_EQ(texts, (std::vector<std::string>{"f32:columns:4", "f16:rows:1", "bf16:rows:8", "f16:columns:8"}))
      << "bias, scale, residual, aux";
  EXPECT_TRUE(validate(description)) << validate(description).reason();
}

TEST(EpilogueTensors, AreTransposedWithD) {
  const GemmSignature turned = transposed(describe(problem()));
  EXPECT_EQ(signature(turned.epilogue), "graph f32 add(add(add(acc,column(bias)),row(scale)),full(residual)); aux=acc");
  EXPECT_EQ(to_string(turned.tensors[0]), "f32:rows:4");
  EXPECT_EQ(to_string(turned.tensors[2]), "bf16:columns:8");
  EXPECT_EQ(transposed(turned), describe(problem()));
  EXPECT_EQ(describe(transposed(problem())), turned);
}

TEST(EpilogueTensors, MayHaveAnyStridesAndBeBroadcastOverABatch) {
  Gemm gemm = problem();
  gemm.tensors[3].tensor.stride = {100, 3};
  ASSERT_TRUE(validate(gemm)) << validate(gemm).reason();
  EXPECT_EQ(to_string(describe(gemm).tensors[2]), "bf16:none:1");
  for (Tensor* each : {&gemm.a, &gemm.b, &gemm.d, &gemm.tensors[0].tensor, &gemm.tensors[1].tensor})
    *each = batched(*each, 3);
  ASSERT_TRUE(validate(gemm)) << validate(gemm).reason();
  EXPECT_EQ(slice(gemm, 2).tensor("bias").address, 5 * kApart + 2 * 24 * 4);
  EXPECT_EQ(slice(gemm, 2).tensor("residual").address, 7 * kApart) << "broadcast over the batch";
}

TEST(EpilogueTensors, OnlyAFullInputMayBeAnOutput) {
  Gemm in_place = problem();
  in_place.tensors[3].tensor = in_place.d;
  EXPECT_TRUE(validate(in_place)) << validate(in_place).reason();
  in_place.tensors[3].tensor = in_place.tensors[0].tensor;
  EXPECT_TRUE(validate(in_place)) << "an output other than D: " << validate(in_place).reason();
  Gemm one_row = problem();
  one_row.a = matrix(1 * kApart, DType::f32, 1, 32);
  one_row.d = one_row.tensors[1].tensor = matrix(3 * kApart, DType::f32, 1, 24);
  one_row.tensors[0].tensor = matrix(4 * kApart, DType::f16, 1, 24);
  one_row.tensors[2].tensor = matrix(6 * kApart, DType::f16, 1, 1);
  one_row.tensors[3].tensor = matrix(7 * kApart, DType::bf16, 1, 24);
  EXPECT_EQ(validate(one_row).reason(), "'bias' [0xc0000000, 0xc0000060) overlaps D [0xc0000000, 0xc0000060)")
      << "a vector is staged for other tiles too";
}

TEST(EpilogueTensors, AreRefusedWithTheReason) {
  struct Wrong {
    std::string_view says;
    std::function<void(Gemm&)> spoil;
  };
  const auto tensor = [](Gemm& gemm, std::size_t index) -> Tensor& { return gemm.tensors[index].tensor; };
  for (const Wrong& wrong : std::vector<Wrong>{
           {"the epilogue writes 'aux', but no tensor has that name",
            [](Gemm& g) { g.tensors.erase(g.tensors.begin()); }},
           {"the epilogue reads 'residual', but no tensor has that name", [](Gemm& g) { g.tensors.pop_back(); }},
           {"the epilogue has no tensor 'other'",
            [](Gemm& g) {
              g.tensors.push_back({"other", g.d});
            }},
           {"two tensors have the name 'bias'", [](Gemm& g) { g.tensors.push_back(g.tensors[1]); }},
           {"'bias' must be (1,24), got (1,16)", [&](Gemm& g) { tensor(g, 1) = matrix(kApart, DType::f32, 1, 16); }},
           {"'scale' must be (16,1), got (1,16)", [&](Gemm& g) { tensor(g, 2) = transposed(tensor(g, 2)); }},
           {"'bias' has a batch of 2, but D has a batch of 1",
            [&](Gemm& g) { tensor(g, 1) = batched(tensor(g, 1), 2); }},
           {"'bias' is f64, but the epilogue computes in f32: it must not be f64",
            [&](Gemm& g) { tensor(g, 1).dtype = DType::f64; }},
           {"bias is s4: elements must be whole bytes", [&](Gemm& g) { tensor(g, 1).dtype = DType::s4; }},
           {"bias has a negative stride -1", [&](Gemm& g) { tensor(g, 1).stride[1] = -1; }},
           {"'bias' is a null pointer", [&](Gemm& g) { tensor(g, 1).address = 0; }},
           {"'bias' must be aligned to its element size of 4 bytes, got address 0x140000002",
            [&](Gemm& g) { tensor(g, 1).address += 2; }},
           {"'bias' is on cuda:0, but D is on host",
            [&](Gemm& g) {
              tensor(g, 1).device = {MemoryDevice::Kind::cuda, 0};
            }},
           {"aux must have one stride of 1, got (48,2)",
            [&](Gemm& g) {
              tensor(g, 0).stride = {48, 2};
            }},
           {"'aux' [0xc0000000, 0xc0000300) overlaps D [0xc0000000, 0xc0000600)",
            [&](Gemm& g) { tensor(g, 0).address = g.d.address; }},
           {"'residual' [0x100000000, 0x100000300) overlaps 'aux' [0x100000000, 0x100000300)",
            [&](Gemm& g) { tensor(g, 3).address = tensor(g, 0).address; }},
           {"'bias' [0x100000000, 0x100000060) overlaps 'aux' [0x100000000, 0x100000300)",
            [&](Gemm& g) { tensor(g, 1).address = tensor(g, 0).address; }}}) {
    Gemm gemm = problem();
    wrong.spoil(gemm);
    EXPECT_EQ(validate(gemm).reason(), wrong.says);
  }
}

}  // namespace
}  // namespace tilewright::op
