// The command tilewright emulate: arguments, reports, exit codes, suppressions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tilewright/base/error.hpp"
#include "tilewright/compile/file.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/emulate_arguments.hpp"
#include "tools/cli/finding_report.hpp"

namespace tilewright::cli {
namespace {

using testing::HasSubstr;

/// out[t] = x[t + offset] * by for 32 threads. PTX, so that the tests need no compiler.
constexpr const char* kScale = R"(.version 9.0
.target sm_90a
.address_size 64
.file 1 "scale.cu"
.visible .entry scale(.param .u64 .ptr x, .param .u64 .ptr out, .param .u32 offset, .param .f32 by)
{
  .reg .u32 %t, %o;
  .reg .u64 %w, %x, %out;
  .reg .f32 %v, %by;
  mov.u32 %t, %tid.x;
  ld.param.u32 %o, [offset];
  ld.param.f32 %by, [by];
  ld.param.u64 %x, [x];
  ld.param.u64 %out, [out];
  mad.wide.u32 %out, %t, 4, %out;
  add.u32 %t, %t, %o;
  mad.wide.u32 %x, %t, 4, %x;
  .loc 1 3 7
  ld.global.f32 %v, [%x];
  mul.f32 %v, %v, %by;
  st.global.f32 [%out], %v;
  ret;
}
)";

class EmulateCommandTest : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    compile::write_file(folder_.path() + "/" + name, text);
    return folder_.path() + "/" + name;
  }
  std::string x() {
    NpyArray array{"<f4", {32}, std::vector<std::byte>(128)};
    for (int i = 0; i < 32; ++i) {
      const auto value = static_cast<float>(i);
      std::memcpy(array.data.data() + 4 * i, &value, 4);
    }
    const std::vector<std::byte> bytes = npy_bytes(array);
    return file("x.npy", std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  ExitCode run(const std::string& options) {
    CLI::App app;
    const Command command = add_emulate_command(app);
    app.parse("emulate " + file("scale.ptx", kScale) + " --out-dir " + folder_.path() + " " + options, false);
    return command.run();
  }
  std::string refusal(const std::string& options) {
    try {
      run(options);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "no refusal";
  }

  compile::ScopedFolder folder_{testing::TempDir()};
};

TEST_F(EmulateCommandTest, WritesOutputs) {
  ASSERT_EQ(run("--block 32 --args " + x() + ",out:f32[4,8],0,2.5"), ExitCode::ok);
  const NpyArray out = read_npy_array(folder_.path() + "/out.npy");
  EXPECT_EQ(out.descr, "<f4");
  EXPECT_EQ(out.shape, (std::vector<std::int64_t>{4, 8}));
  float last = 0;
  std::memcpy(&last, out.data.data() + 124, 4);
  EXPECT_EQ(last, 77.5F);
}

TEST_F(EmulateCommandTest, FindingsExitWith1UnlessTheyAreSuppressed) {
  const std::string command = "--block 32 --args " + x() + ",out:f32[32],1,2.5";
  testing::internal::CaptureStdout();
  EXPECT_EQ(run(command + " --json"), ExitCode::wrong_result);
  const auto json = nlohmann::json::parse(testing::internal::GetCapturedStdout());
  ASSERT_EQ(json["findings"].size(), 1U);
  EXPECT_EQ(json["findings"][0]["kind"], "out_of_bounds_global");
  EXPECT_EQ(json["findings"][0]["thread"], (std::vector<int>{31, 0, 0}));
  EXPECT_EQ(json["findings"][0]["file"], "scale.cu");
  EXPECT_EQ(json["findings"][0]["line"], 3);
  const auto suppressed = [&](const std::string& line) { return run(command + " --suppressions " + file("s", line)); };
  EXPECT_EQ(suppressed("# none\nout_of_bounds_global scale.cu:3\n"), ExitCode::ok);
  EXPECT_EQ(suppressed("* scale.cu"), ExitCode::ok);
  EXPECT_EQ(suppressed("out_of_bounds_global scale.cu:4"), ExitCode::wrong_result);
  EXPECT_EQ(suppressed("shared_race"), ExitCode::wrong_result);
  EXPECT_THAT(refusal(command + " --suppressions " + file("s", "shared_race\nno_such_kind a.cu")),
              HasSubstr("s:2: unknown kind of finding 'no_such_kind'"));
}

TEST_F(EmulateCommandTest, ProfilesByLineAndByInstruction) {
  const std::string command = "--block 32 --profile --args " + x() + ",out:f32[32],0,2.5";
  testing::internal::CaptureStdout();
  EXPECT_EQ(run(command + " --json"), ExitCode::ok);
  const auto json = nlohmann::json::parse(testing::internal::GetCapturedStdout())["profile"];
  EXPECT_EQ(json["total"]["instructions"], 12);
  EXPECT_EQ(json["total"]["active_lanes"], 12 * 32);
  EXPECT_EQ(json["total"]["global_bytes"], 256);
  EXPECT_EQ(json["total"]["global_sectors"], 8);
  EXPECT_EQ(json["instructions"][0]["instruction"], "ld.param");
  EXPECT_EQ(json["instructions"][0]["instructions"], 4);
  const auto& last = json["lines"].back();
  EXPECT_EQ(last["file"], "scale.cu");
  EXPECT_EQ(last["line"], 3);
  EXPECT_EQ(last["global_requests"], 2);
  testing::internal::CaptureStdout();
  EXPECT_EQ(run(command), ExitCode::ok);
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_THAT(text, HasSubstr("scale.cu:3"));
  EXPECT_THAT(text, HasSubstr("global memory: 256 bytes in 8 sectors of 32 bytes, 100 % used; 2 lines of 128 bytes"));
}

TEST_F(EmulateCommandTest, TargetsAreThoseThatAreEmulated) {
  EXPECT_THAT(refusal("--target sm_120a"), HasSubstr("--target: unknown target 'sm_120a': the emulator has sm_75"));
  EXPECT_EQ(run("--target sm_90a --block 32 --args " + x() + ",out:f32[32],0,2.5"), ExitCode::ok);
}

TEST_F(EmulateCommandTest, ArgumentsAreTypedByTheParameters) {
  const std::string arrays = "--block 32 --args " + x() + ",out:f32[32],";
  EXPECT_THAT(refusal(arrays + "1.5,2"), HasSubstr("parameter 2 takes a 32-bit integer, got the number 1.5"));
  EXPECT_THAT(refusal(arrays + "4294967296,2"), HasSubstr("parameter 2 takes a 32-bit integer, got 4294967296"));
  EXPECT_THAT(refusal(arrays + "0,many"), HasSubstr("parameter 3 takes an f32, got 'many'"));
  EXPECT_THAT(refusal(arrays + "0,1e39"), HasSubstr("parameter 3 takes an f32, got 1e+39, which is beyond its range"));
  EXPECT_THAT(refusal(arrays + "0"),
              HasSubstr("scale takes 4 arguments (0: a pointer, 1: a pointer, 2: a 32-bit integer, "
                        "3: an f32), got 3"));
  EXPECT_THAT(refusal("--block 32 --args 1,out:f32[32],0,2"), HasSubstr("parameter 0 takes a pointer"));
  EXPECT_THAT(refusal("--block 32 --args null,out:f31[32],0,2"), HasSubstr("parameter 1 takes a pointer"));
  EXPECT_THAT(refusal("--block 32 --args " + x() + "," + x() + "," + x() + ",2"),
              HasSubstr("parameter 2 takes a 32-bit integer"));
  EXPECT_EQ(run("--block 32 --args null,out:f32[32],0,2"), ExitCode::wrong_result);
  EXPECT_EQ(run("--block 4 --args " + x() + ",out:f32[32]=-1.5,0x1c,-2"), ExitCode::ok);
}

TEST_F(EmulateCommandTest, RefusesWhatTheKernelDoesNotTake) {
  EXPECT_THAT(refusal("--kernel nosuch"), HasSubstr("its kernels are scale"));
  EXPECT_THAT(refusal("--grid 0"), HasSubstr("--grid"));
  EXPECT_THAT(refusal("--block 2048 --args " + x() + ",out:f32[32],0,2"), HasSubstr("1024"));
  EXPECT_THAT(refusal("--target sm_10"), HasSubstr("--target"));
  CLI::App app;
  const Command command = add_emulate_command(app);
  app.parse("emulate " + file("broken.ptx", ".version 9.0\n.entry {"), false);
  EXPECT_THROW(command.run(), InvalidArgument);
}

TEST_F(EmulateCommandTest, AnIncludeFolderIsOneArgument) {
  CLI::App app;
  const Command command = add_emulate_command(app);
  app.parse("emulate -I " + folder_.path() + " -I /usr/include " + file("scale.ptx", kScale) + " --grid 0", false);
  EXPECT_THROW(command.run(), InvalidArgument);
}

std::vector<std::byte> argument_bytes(const std::string& text, const emulator::KernelParameter& parameter) {
  const auto items = read_arguments(text, {"k", "k", "k", {parameter}});
  const auto* const array = std::get_if<ArrayItem>(&items.at(0));
  return array != nullptr ? array->array.data : std::get<std::vector<std::byte>>(items.at(0));
}

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> all;
  for (const int value : values) all.push_back(static_cast<std::byte>(value));
  return all;
}

TEST(EmulateArguments, FillArraysOfSmallFloats) {
  const emulator::KernelParameter pointer{emulator::PtxType::u64, 8, true, false};
  EXPECT_EQ(argument_bytes("x:f16[2]=-1.5", pointer), bytes({0x00, 0xbe, 0x00, 0xbe}));
  EXPECT_EQ(argument_bytes("x:f16[1]=2", pointer), bytes({0x00, 0x40}));
  EXPECT_EQ(argument_bytes("x:bf16[1]=1", pointer), bytes({0x80, 0x3f}));
  EXPECT_EQ(argument_bytes("x:e4m3[2]=0.5", pointer), bytes({0x30, 0x30}));
  EXPECT_EQ(argument_bytes("x:e5m2[1]=1.1", pointer), bytes({0x3c}));
  EXPECT_THROW(argument_bytes("x:f16[1]=70000", pointer), InvalidArgument);
  EXPECT_THROW(argument_bytes("x:e4m3[1]=500", pointer), InvalidArgument);
  EXPECT_THROW(argument_bytes("x:f15[1]=1", pointer), InvalidArgument);
}

TEST(EmulateArguments, TypesHaveTheNamesOfNumPyToo) {
  const emulator::KernelParameter pointer{emulator::PtxType::u64, 8, true, false};
  for (const std::string type : {"s16", "i16", "int16"})
    EXPECT_EQ(argument_bytes("x:" + type + "[2]=-2", pointer), bytes({0xfe, 0xff, 0xfe, 0xff})) << type;
  for (const std::string type : {"f16", "float16"})
    EXPECT_EQ(argument_bytes("x:" + type + "[1]=2", pointer), bytes({0x00, 0x40})) << type;
  const emulator::KernelParameter pair{emulator::PtxType::b8, 2, false, true};
  EXPECT_EQ(argument_bytes("i16:-2", pair), bytes({0xfe, 0xff}));
  try {
    argument_bytes("x:i24[1]=2", pointer);
    ADD_FAILURE() << "i24 is no type";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("f32|float32"));
    EXPECT_THAT(error.what(), HasSubstr("s32|i32|int32"));
    EXPECT_THAT(error.what(), HasSubstr(" bool"));
  }
}

TEST(EmulateArguments, NumbersOfAGivenTypeFitStructsOfItsSize) {
  const emulator::KernelParameter half{emulator::PtxType::b8, 2, false, true};
  EXPECT_EQ(argument_bytes("f16:1.5", half), bytes({0x00, 0x3e}));
  EXPECT_EQ(argument_bytes("bf16:-2", half), bytes({0x00, 0xc0}));
  EXPECT_THROW(argument_bytes("1.5", half), InvalidArgument);
  EXPECT_THROW(argument_bytes("f32:1.5", half), InvalidArgument);
  EXPECT_EQ(argument_bytes("1.5", {emulator::PtxType::f16, 2, false, false}), bytes({0x00, 0x3e}));
}

TEST(EmulateArguments, ArraysOfOtherElementsThanTheParametersAreNamed) {
  using emulator::PtxType;
  const auto sentences = [](const std::string& text, std::optional<PtxType> element) {
    const emulator::KernelInfo kernel{"k", "k", "k(float const*)", {{PtxType::u64, 8, true, false, element}}};
    return other_elements(read_arguments(text, kernel), kernel);
  };
  EXPECT_THAT(
      sentences("x:f64[2]=1", PtxType::f32),
      testing::ElementsAre("--args: parameter 0 of k(float const*) points to f32, and the array has elements of "
                           "f64"));
  EXPECT_THAT(sentences("x:s32[2]", PtxType::f32), testing::SizeIs(1));
  EXPECT_THAT(sentences("x:f32[2]", PtxType::u32), testing::SizeIs(1));
  EXPECT_THAT(sentences("x:f16[2]", PtxType::bf16), testing::SizeIs(1));
  EXPECT_THAT(sentences("x:u16[2]", PtxType::f16), testing::SizeIs(1));
  for (const auto& [text, element] : {std::pair{"x:s32[2]", PtxType::u32}, std::pair{"x:u8[8]", PtxType::f32},
                                      std::pair{"x:bf16[2]", PtxType::bf16}, std::pair{"x:f32[2]", PtxType::f32}}) {
    EXPECT_THAT(sentences(text, element), testing::IsEmpty()) << text;
  }
  EXPECT_THAT(sentences("x:f64[2]", std::nullopt), testing::IsEmpty());
}

TEST(EmulateArguments, AreSplitAtCommasOutsideOfBrackets) {
  EXPECT_THAT(split_arguments("a.npy, out:f32[3,4] ,-1"), testing::ElementsAre("a.npy", "out:f32[3,4]", "-1"));
  EXPECT_TRUE(split_arguments(" ").empty());
}

/// The innermost frame in the kernel's own file is reported, not one of a header.
TEST(FindingReport, NamesTheKernelsOwnFrame) {
  const compile::ScopedFolder folder(testing::TempDir());
  const std::string header = folder.path() + "/lib.h";
  compile::write_file(header, "a\nb\n");
  const engine::KernelFile kernel{"my/kernel.cu", "one\n  two\nthree\n", ""};
  const SourceExcerpts excerpts(kernel);
  emulator::Finding finding;
  finding.kind = emulator::FindingKind::shared_race;
  finding.location = {10, "st.shared.u32 [%r1], %r2", {{header, 1}, {"my/kernel.cu", 2}, {"my/kernel.cu", 3}}};
  const std::string text = report_text(finding, excerpts);
  EXPECT_THAT(text, HasSubstr("error: shared race at my/kernel.cu:2\n     2 | two\n"));
  EXPECT_THAT(text, HasSubstr("frame: " + header + ":1"));
  EXPECT_EQ(excerpts.text_of({header, 2}), "b");
  compile::write_file(header, "a\r\n  b \r\n");
  EXPECT_EQ(SourceExcerpts().text_of({header, 2}), "b") << "a file whose lines end with a carriage return";
}

}  // namespace
}  // namespace tilewright::cli
