// The PTX parser: modules, operands, source locations, and refusals with their line.
#include "tilewright/emulator/ptx_parser.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "tilewright/emulator/checks.hpp"

namespace tilewright::emulator {
namespace {

constexpr std::string_view kModule = R"(//
// a comment
.version 9.0
.target sm_90a, texmode_independent
.address_size 64
/* another
   comment */
.file	1 "/src/kernel.cu"
.file 2 "/src/inner.cuh", 12345, 678
.const .align 4 .b8 table[8] = {1, 0, 0, 0, 2};
.global .align 8 .u64 pointer = generic(table) + 4;
.extern .shared .align 16 .b8 dynamic[];
.visible .entry kernel(
	.param .align 8 .b8 kernel_param_0[48],
	.param .u64 .ptr .global .align 1 other
)
.maxntid 128, 1, 1
.minnctapersm 2
{
	.reg .pred 	%p<3>;
	.reg .b32 	%r<40>;
	.reg .b64 	%rd<4>;
	.loc	1 12 3
	ld.param.u64 	%rd1, [kernel_param_0+8];
	.loc	2 7 9, function_name $L__info_string0, inlined_at 1 12 3
$L__BB0_1:
	@!%p1 bra 	$L__BB0_1;
	{ .reg .b32 %r1; LOCAL: add.s32 %r1, %r2, -7; bra LOCAL; }
	{ LOCAL: bra LOCAL; }
	ret;
}
.section .debug_str { $L__info_string0: .b8 95, 90 }
)";

TEST(Parser, ReadsAModule) {
  const auto module = parse_ptx(kModule);
  EXPECT_EQ(module->version_major, 9);
  EXPECT_EQ(module->target, "sm_90a");
  ASSERT_EQ(module->variables.size(), 3U);
  EXPECT_EQ(module->variables[0].size, 8U);
  EXPECT_EQ(module->variables[0].space, Space::constant);
  EXPECT_EQ(module->variables[1].initialisers.at(0).variable, 0U);
  EXPECT_EQ(module->variables[1].initialisers.at(0).bits, 4U);
  EXPECT_TRUE(module->variables[2].external);
  const Function* const kernel = module->find("kernel");
  ASSERT_NE(kernel, nullptr);
  EXPECT_TRUE(kernel->entry);
  EXPECT_EQ(kernel->maximum_block, 128U);
  EXPECT_EQ(kernel->parameters.size(), 2U);
  EXPECT_EQ(kernel->variables[0].size, 48U);
  EXPECT_EQ(module->find("none"), nullptr);
}

TEST(Parser, AlignsPointersToTheirSize) {
  const auto module = parse_ptx(R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u32 count, .param .u64 .ptr .global .align 1 bytes, .param .align 16 .b8 value[16]) { ret; }
)");
  const Function* const kernel = module->find("k");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->variables[1].alignment, 8U) << "1 is the alignment of the memory behind the pointer";
  EXPECT_EQ(kernel->variables[2].alignment, 16U);
}

TEST(Parser, ResolvesOperands) {
  const auto module = parse_ptx(kModule);
  const auto& code = module->find("kernel")->instructions;
  ASSERT_EQ(code.size(), 6U);
  EXPECT_EQ(code[0].opcode, "ld.param.u64");
  const Operand& address = code[0].operands.at(1);
  EXPECT_EQ(address.kind, Operand::Kind::address);
  EXPECT_EQ(address.offset, 8);
  EXPECT_EQ(address.elements.at(0).kind, Operand::Kind::variable);
  EXPECT_TRUE(code[1].guard_negated);
  EXPECT_EQ(code[1].operands.at(0).kind, Operand::Kind::label);
  // %r1 of the inner block is not the %r1 of the family, and labels of blocks are local to them.
  EXPECT_NE(code[2].operands.at(0).index, code[2].operands.at(1).index);
  EXPECT_EQ(code[2].operands.at(2).bits, static_cast<std::uint64_t>(-7));
  EXPECT_NE(code[3].operands.at(0).index, code[4].operands.at(0).index);
}

TEST(Parser, LocatesInstructionsInTheSource) {
  const auto module = parse_ptx(kModule);
  const auto& code = module->find("kernel")->instructions;
  const CodeLocation outer = module->locate(code[0]);
  EXPECT_EQ(outer.source, (std::vector<SourceLine>{{"/src/kernel.cu", 12}}));
  EXPECT_EQ(outer.ptx_text, "ld.param.u64 %rd1, [kernel_param_0+8]");
  const CodeLocation inlined = module->locate(code[1]);
  EXPECT_EQ(inlined.source, (std::vector<SourceLine>{{"/src/inner.cuh", 7}, {"/src/kernel.cu", 12}}));
  EXPECT_EQ(to_string(inlined), "/src/inner.cuh:7, inlined at /src/kernel.cu:12 (PTX line " +
                                    std::to_string(inlined.ptx_line) + ": @!%p1 bra $L__BB0_1)");
}

struct BadText {
  std::string_view text;
  std::string_view reason;
  int line;
};

TEST(Parser, RefusesBadTextWithItsLine) {
  static constexpr BadText kBad[] = {
      {"\n\nnonsense", "module-level directive", 3},
      {".address_size 32", "64-bit", 1},
      {"/* open", "comment", 1},
      {".file 1 \"open", "string", 1},
      {".entry k() {\n.reg .q32 %r;\n}", "register type", 2},
      {".entry k() {\n.reg .b32 %r<99999999999>;\n}", "too many registers", 2},
      {".global .b8 x[99999999999];", "too large", 1},
      {".entry k() {\nadd.s32 0x, 1;\n}", "malformed number", 2},
      {".entry k() {\nmov.f32 %f, 0f12;\n}", "malformed number", 2},
      {".entry k() {\n@%p bra X;\n}", "predicate register", 2},
      {".entry k() {\nL: L: ret;\n}", "defined twice", 2},
      {".entry k() {\nret\n", "expected", 3},
      {".entry k() { ret; } .entry k() { ret; }", "defined twice", 1},
      {".global .u64 p = nowhere;", "unknown variable", 1},
      {".entry k() { x: .branchtargets y; }", "unknown label", 1},
  };
  for (const BadText& bad : kBad) {
    try {
      parse_ptx(bad.text);
      ADD_FAILURE() << bad.text;
    } catch (const EmulationFinding& caught) {
      EXPECT_EQ(caught.finding().kind, FindingKind::malformed_ptx);
      EXPECT_NE(caught.finding().detail.find(bad.reason), std::string::npos) << caught.what();
      EXPECT_EQ(caught.finding().location.ptx_line, bad.line) << caught.what();
    }
  }
}

// Two translation units, as nvcc -rdc=true compiles them: both have a variable and a function of their own called `own`
// and `text`, and a weak function.
constexpr std::string_view kFirstUnit = R"(.version 8.0
.target sm_80
.file 1 "first.cu"
.extern .global .align 4 .u32 counter;
.global .align 8 .u64 of_function = other;
.global .align 1 .b8 text[2] = {97, 0};
.extern .shared .align 4 .b8 dynamic[];
.extern .func other(.param .b32 a);
.func own() { .loc 1 7 0 ret; }
.weak .func merged() { call own; ret; }
.visible .entry first() { .reg .u64 %r; mov.u64 %r, counter; mov.u64 %r, text; call own; call other, (%r); ret; }
)";
constexpr std::string_view kSecondUnit = R"(.version 8.1
.target sm_80
.file 1 "second.cu"
.visible .global .align 4 .u32 counter = 5;
.global .align 1 .b8 text[4] = {98, 99, 100, 0};
.extern .shared .align 16 .b8 dynamic[];
.func own(.param .b32 a) { .loc 1 9 0 ret; }
.weak .func merged() { call own; ret; ret; }
.visible .func other(.param .b32 a) { ret; }
.visible .entry second() { .reg .u64 %r; mov.u64 %r, counter; mov.u64 %r, text; call own; call merged; ret; }
)";

TEST(Parser, LinksTranslationUnits) {
  const auto module = parse_ptx(std::string(kFirstUnit) + std::string(kSecondUnit));
  const auto function_of = [&](const ParsedInstruction& call) { return &module->functions.at(call.operands[0].index); };
  const auto& first = module->find("first")->instructions;
  const auto& second = module->find("second")->instructions;
  const std::uint32_t counter = first[0].operands[1].index;
  EXPECT_EQ(second[0].operands[1].index, counter);
  EXPECT_FALSE(module->variables[counter].external);
  EXPECT_EQ(module->variables[counter].initialisers.at(0).bits, 5U);
  EXPECT_EQ(module->variables[first[1].operands[1].index].size, 2U);
  EXPECT_EQ(module->variables[second[1].operands[1].index].size, 4U);
  EXPECT_EQ(function_of(first[2])->parameters.size(), 0U);
  EXPECT_EQ(function_of(second[2])->parameters.size(), 1U);
  EXPECT_EQ(module->locate(function_of(first[2])->instructions[0]).source.at(0).file, "first.cu");
  EXPECT_EQ(module->locate(function_of(second[2])->instructions[0]).source.at(0).file, "second.cu");
  EXPECT_FALSE(function_of(first[3])->declared_only);
  EXPECT_TRUE(function_of(first[3])->address_taken);
  EXPECT_EQ(function_of(second[3])->instructions.size(), 2U);  // of two weak functions, the first one counts
  EXPECT_EQ(function_of(function_of(second[3])->instructions[0])->parameters.size(), 0U);
  const auto dynamic = [](const Variable& variable) { return variable.name == "dynamic"; };
  ASSERT_EQ(std::ranges::count_if(module->variables, dynamic), 1);
  EXPECT_EQ(std::ranges::find_if(module->variables, dynamic)->alignment, 16U);
}

TEST(Parser, RefusesTwoDefinitionsOfALinkedName) {
  for (const char* const definition : {".visible .global .u32 x;", ".visible .func x() { ret; }"}) {
    const std::string unit = std::string(".version 8.0\n") + definition + "\n";
    EXPECT_NO_THROW(parse_ptx(unit));
    EXPECT_THROW(parse_ptx(unit + unit), EmulationFinding);
  }
}

TEST(Parser, DamagedTextIsParsedOrRefused) {
  std::mt19937 random(7);
  const std::string whole(kModule);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = whole;
    for (int change = 0; change < 3; ++change) {
      const std::size_t at = random() % damaged.size();
      if (random() % 2 == 0) {
        damaged[at] = static_cast<char>(random() % 128);
      } else {
        damaged.erase(at, random() % 40);
      }
      if (damaged.empty()) break;
    }
    try {
      parse_ptx(damaged);
    } catch (const EmulationFinding& caught) {
      EXPECT_EQ(caught.finding().kind, FindingKind::malformed_ptx);
    }
  }
}

}  // namespace
}  // namespace tilewright::emulator
