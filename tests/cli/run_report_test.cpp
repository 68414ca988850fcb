// What the emulated CUDA libraries tell `tilewright emulate run`.
#include "tools/cuda_runtime/run_report.hpp"

#include <gtest/gtest.h>

#include "tilewright/base/error.hpp"

namespace tilewright::cuda_runtime {
namespace {

emulator::Finding finding(int line) {
  emulator::Finding made;
  made.kind = emulator::FindingKind::global_race;
  made.severity = emulator::Severity::warning;
  made.detail = "two writes \xff";
  made.thread = emulator::ThreadLocation{{1, 2, 3}, {4, 5, 6}};
  made.location = {line, "st.global.u32 [%rd1], %r1", {{"kernel.cu", line}}};
  made.address = 0x7f0000001000;
  made.notes = {"a note"};
  made.count = 2;
  return made;
}

TEST(RunReport, IsReadAsItWasWritten) {
  RunReport report;
  report.program = "/bin/program";
  report.add("_Z1kv", finding(1));
  report.unsupported["cudaMallocArray"] = 2;
  report.notes = {"a note"};
  report.launches = 7;
  report.seconds = 0.5;
  report.timed = true;
  const RunReport read = parse_report(to_json(report));
  EXPECT_EQ(to_json(read), to_json(parse_report(to_json(read))));
  ASSERT_EQ(read.findings.size(), 1U);
  emulator::Finding expected = finding(1);
  expected.detail = "two writes \xef\xbf\xbd";  // JSON has no such byte
  EXPECT_EQ(read.findings[0].finding, expected);
  EXPECT_EQ(read.findings[0].kernel, "_Z1kv");
  EXPECT_EQ(read.unsupported, report.unsupported);
  EXPECT_EQ(read.launches, 7U);
  EXPECT_TRUE(read.timed);
}

TEST(RunReport, FindingsOfOnePlaceAreOne) {
  RunReport report, other;
  report.add("k", finding(1));
  report.add("k", finding(1));
  report.add("k", finding(2));
  other.add("k", finding(1));
  other.add("another", finding(1));
  report.merge(other);
  ASSERT_EQ(report.findings.size(), 3U);
  EXPECT_EQ(report.findings[0].finding.count, 6U);
}

TEST(RunReport, DamagedTextsAreRefused) {
  for (const char* const text : {"", "{", "[]", "{\"program\": 1}", "null"})
    EXPECT_THROW(parse_report(text), InvalidArgument) << text;
  EXPECT_THROW(parse_settings("{}"), InvalidArgument);
}

TEST(Settings, AreReadAsTheyWereWritten) {
  Settings settings;
  settings.report_folder = "/tmp/a \"folder\"";
  settings.multiprocessors = 7;
  settings.check_global = false;
  EXPECT_EQ(to_json(parse_settings(to_json(settings))), to_json(settings));
}

}  // namespace
}  // namespace tilewright::cuda_runtime
