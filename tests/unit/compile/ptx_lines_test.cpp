#include "tilewright/compile/ptx_lines.hpp"

#include <gtest/gtest.h>

namespace tilewright::compile {
namespace {

constexpr std::string_view kPtx =
    ".entry kernel()\n"                  // line 1
    "{\n"                                //
    "\t.loc\t2 7 3, function_name $x\n"  //
    "\tmov.b32 %r1, 0;\n"                // line 4
    "\tfoo.b32 %r1, %r2;\n"              //
    "\t.loc 1 9 1\n"                     //
    "\tret;\n"                           // line 7
    "}\n"
    "\t.file\t1 \"other.cu\"\n"
    "\t.file\t2 \"kernel.tw\", 0, 0\n";

TEST(WithSourceLines, AddsThePlaceThatLocNames) {
  EXPECT_EQ(with_source_lines("ptxas kernel.ptx, line 5; error   : Not a name: 'foo'\nptxas fatal   : aborted\n", kPtx),
            "ptxas kernel.ptx, line 5; error   : Not a name: 'foo'\n"
            "  at kernel.tw:7: foo.b32 %r1, %r2;\n"
            "ptxas fatal   : aborted\n");
  EXPECT_EQ(with_source_lines("ptxas info    : (C7517) injected in around line 7 by compiler", kPtx),
            "ptxas info    : (C7517) injected in around line 7 by compiler\n  at other.cu:9: ret;\n");
}

TEST(WithSourceLines, KeepsMessagesWithoutAPlace) {
  for (const std::string_view message : {"kernel.cu(5): error at line 5\n", "ptxas kernel.ptx, line 2; error\n",
                                         "ptxas kernel.ptx, line 900; error\n", "ptxas kernel.ptx, line x\n"}) {
    EXPECT_EQ(with_source_lines(message, kPtx), message);
  }
  EXPECT_EQ(with_source_lines("ptxas kernel.ptx, line 5; error\n", ""), "ptxas kernel.ptx, line 5; error\n");
}

}  // namespace
}  // namespace tilewright::compile
