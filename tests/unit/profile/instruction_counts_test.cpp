// Counts of the instructions in PTX.
#include "tilewright/profile/instruction_counts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::profile {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(InstructionCounts, InstructionsAreCountedByKind) {
  constexpr const char* kPtx = R"(
.version 8.0
.target sm_90a
.visible .entry kernel(
	.param .u64 kernel_param_0
)
{
	.reg .b32 	%r<9>;
	// fma.rn.f32 in a comment
	ld.param.u64 	%rd1, [kernel_param_0];
	ld.global.v4.f32 	{%f1, %f2, %f3, %f4}, [%rd1];
	@%p1 bra 	$L_1;
	@!%p1 fma.rn.f32 	%f5, %f1, %f2, %f3;
	fma.rn.f32 	%f5, %f1, %f2, %f3;
$L_1:
	{ cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4]; }
	cp.async.cg.shared.global [%r1], [%rd1], 16;
	wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, 1, 1, 1, 0, 0;
	wgmma.fence.sync.aligned;
	mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f1};
	st.shared.f32 	[%r1], %f5;
	st.local.f32 	[%rd1], %f5;
	bar.sync 	0;
	ret;
}
)";
  EXPECT_THAT(
      count_instructions(kPtx),
      ElementsAre(Pair("wgmma", 1), Pair("mma", 1), Pair("TMA copy", 1), Pair("cp.async", 1), Pair("global load", 1),
                  Pair("shared store", 1), Pair("local memory", 1), Pair("other load or store", 1), Pair("fence", 1),
                  Pair("barrier", 1), Pair("multiply-add", 2), Pair("branch", 1), Pair("other", 1)));
  EXPECT_TRUE(count_instructions("").empty());
  EXPECT_TRUE(count_instructions(".version 8.0\n// only a comment").empty());
}

}  // namespace
}  // namespace tilewright::profile
