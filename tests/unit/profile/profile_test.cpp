// Profiles of small products on the emulator, with and without a fake timer, and their formats.
#include "tilewright/profile/profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "tilewright/base/error.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/profile/formats.hpp"

namespace tilewright::profile {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::ordered_json;

constexpr std::uint64_t kPlaceholder = std::uint64_t{1} << 58;

op::Problem product(std::int64_t m, std::int64_t n, std::int64_t k, DType type = DType::f32) {
  op::Gemm gemm;
  gemm.a = op::matrix(kPlaceholder, type, m, k, op::MatrixLayout::row_major);
  gemm.b = op::matrix(2 * kPlaceholder, type, k, n, op::MatrixLayout::row_major);
  gemm.d = op::matrix(3 * kPlaceholder, type, m, n, op::MatrixLayout::row_major);
  gemm.accumulator = op::default_accumulator(type);
  return gemm;
}

/// Returns 1, 2, 3, ... microseconds for the first, second, ... call of a batch, plus the number of the batch.
class CountingTimer final : public tune::Timer {
 public:
  std::vector<double> time(std::span<const engine::PreparedCall> calls) override {
    if (interrupts_at == batches) throw Interrupted("Ctrl-C");
    std::vector<double> times;
    for (std::size_t i = 0; i < calls.size(); ++i) times.push_back(1000.0 * static_cast<double>(i + 1) + batches);
    ++batches;
    return times;
  }

  int batches = 0;
  int interrupts_at = -1;
};

class ProfileTest : public testing::Test {
 protected:
  void SetUp() override {
    engine::Options options = engine::Options::from_environment();
    options.device = "emulator:sm_80";
    engine_ = std::make_unique<engine::Engine>(options);
    try {
      engine_->compiler();
    } catch (const ToolchainNotFound& error) {
      GTEST_SKIP() << error.what();
    }
  }

  std::unique_ptr<engine::Engine> engine_;
};

TEST_F(ProfileTest, TheEmulatorVerifiesAndCountsAndHasNoTimes) {
  const std::vector<op::Problem> problems{product(33, 20, 16), product(16, 48, 32)};
  std::vector<std::size_t> steps;
  const Profile found = profile(*engine_, problems, {}, [&](const Progress& each) {
    EXPECT_EQ(each.all, 2u);
    steps.push_back(each.done);
  });
  EXPECT_THAT(steps, testing::ElementsAre(0, 1, 2));
  ASSERT_EQ(found.problems.size(), 2u);
  EXPECT_TRUE(found.is_emulated && found.is_complete);
  const ProblemProfile& first = found.problems[0];
  EXPECT_EQ(first.problem, "gemm A(33,16):f32 B(16,20):f32 D(33,20):f32");
  EXPECT_EQ(first.flops, 2.0 * 33 * 20 * 16);
  EXPECT_EQ(first.bytes, 4.0 * (33 * 16 + 16 * 20 + 33 * 20));
  ASSERT_EQ(first.kernels.size(), 1u);
  const KernelProfile& kernel = first.kernels[0];
  EXPECT_EQ(kernel.disposition, Disposition::passed);
  EXPECT_FALSE(kernel.times);
  EXPECT_GT(kernel.predicted_us.value_or(0.0), 0.0);
  EXPECT_FALSE(kernel.instructions.empty());
  EXPECT_GE(kernel.l2_bytes.value_or(0.0), 4.0 * (33 + 20) * 16);
  const std::string json = to_json(found);
  EXPECT_EQ(Json::parse(json)["problems"][0]["kernels"][0]["times"], nullptr);
  EXPECT_THAT(to_html(json), AllOf(HasSubstr("A in shared memory"), HasSubstr("B in shared memory")));
  EXPECT_THAT(to_table(json), AllOf(HasSubstr("times     none"), HasSubstr("passed"), HasSubstr(kernel.kernel)));
}

TEST_F(ProfileTest, FamiliesAreProfiledSideBySide) {
  const std::vector<op::Problem> problems{product(16, 16, 16, DType::f16)};
  ProfileOptions options{.top = 2, .providers = {"sm80_gemm", "simt_gemm"}, .verifies = false};
  const Profile found = profile(*engine_, problems, options);
  std::vector<std::string> families;
  for (const KernelProfile& kernel : found.problems[0].kernels) families.push_back(kernel.provider);
  EXPECT_THAT(families, testing::UnorderedElementsAre("simt_gemm", "simt_gemm", "sm80_gemm", "sm80_gemm"));
  EXPECT_THAT(to_csv(to_json(found)), HasSubstr(",sm80_gemm,"));
  options.providers = {"simt"};
  EXPECT_THAT([&] { profile(*engine_, problems, options); },
              testing::ThrowsMessage<InvalidArgument>(HasSubstr("unknown provider 'simt'")));
}

TEST_F(ProfileTest, TimesAreSummarised) {
  auto timer = std::make_shared<CountingTimer>();
  const std::vector<op::Problem> problems{product(16, 16, 16)};
  ProfileOptions options{.top = 2, .seconds = 0.001, .least_samples = 21, .verifies = false, .timer = timer};
  const Profile found = profile(*engine_, problems, options);
  ASSERT_EQ(found.problems[0].kernels.size(), 2u);
  EXPECT_EQ(timer->batches, 23);  // two rounds to warm up
  const Times first = found.problems[0].kernels[0].times.value(), second = found.problems[0].kernels[1].times.value();
  EXPECT_EQ(first.samples, 21);
  EXPECT_DOUBLE_EQ(first.median_us, 1012.0);
  EXPECT_DOUBLE_EQ(first.p05_us, 1003.0);
  EXPECT_DOUBLE_EQ(first.p95_us, 1021.0);
  EXPECT_DOUBLE_EQ(second.median_us, 2012.0);
  EXPECT_EQ(found.problems[0].kernels[0].disposition, Disposition::not_verified);
  const Json times = Json::parse(to_json(found))["problems"][0]["kernels"][0]["times"];
  EXPECT_NEAR(times["tflops"].get<double>(), 2.0 * 16 * 16 * 16 / 1012.0e-6 * 1e-12, 1e-12);
}

TEST_F(ProfileTest, AnInterruptionKeepsWhatWasMeasured) {
  auto timer = std::make_shared<CountingTimer>();
  const std::vector<op::Problem> problems{product(16, 16, 16), product(32, 16, 16)};
  ProfileOptions options{
      .seconds = 1e-6, .least_samples = 2, .verifies = false, .returns_when_interrupted = true, .timer = timer};
  bool is_asked_to_end = false;
  const ScopedInterruptCheck check([&] {
    if (is_asked_to_end) throw Interrupted("Ctrl-C");
  });
  const auto run = [&] {
    is_asked_to_end = false;
    return profile(*engine_, problems, options, [&](const Progress& progress) {
      is_asked_to_end = progress.done == 1;
      if (is_asked_to_end) std::this_thread::sleep_for(std::chrono::milliseconds(20));  // checks are 10 ms apart
    });
  };
  const Profile found = run();
  EXPECT_FALSE(found.is_complete);
  EXPECT_EQ(found.problems.front().kernels.front().times.value().samples, 2);
  EXPECT_THAT(to_table(to_json(found)), HasSubstr("interrupted"));
}

TEST_F(ProfileTest, OptionsOutOfRangeAreRefused) {
  const std::vector<op::Problem> problems{product(16, 16, 16)};
  EXPECT_THROW(profile(*engine_, problems, {.top = 0}), InvalidArgument);
  EXPECT_THROW(profile(*engine_, problems, {.seconds = 0.0}), InvalidArgument);
  EXPECT_THROW(profile(*engine_, problems, {.least_samples = 0}), InvalidArgument);
  const std::vector<op::Problem> wrong{product(16, 16, 16, DType::s32)};
  EXPECT_THROW(profile(*engine_, wrong), InvalidArgument);
}

/// A profile that no machine measured, with every disposition and characters that formats must escape.
std::string made_up() {
  Profile profile{.device = "GPU <&\">", .target = "sm_90a", .peak_flops = 9e14, .peak_bytes_per_s = 4.8e12};
  ProblemProfile problem{.problem = "gemm A(8,8):f16",
                         .operation = "gemm",
                         .group = "gemm f16",
                         .m = 8,
                         .n = 8,
                         .k = 8,
                         .flops = 1024.0,
                         .bytes = 384.0,
                         .bound_us = 0.5};
  for (const Disposition each : {Disposition::passed, Disposition::wrong, Disposition::failed, Disposition::not_run}) {
    KernelProfile& kernel = problem.kernels.emplace_back();
    kernel.kernel = fmt::format("kernel_{}", name(each));
    kernel.disposition = each;
    kernel.reason = each == Disposition::passed ? "" : "a, \"b\" & <c>";
    kernel.predicted_us = 2.0;
    kernel.tile = {128, 128, 64};
    kernel.instructions = {{"mma", 3}};
    kernel.shared_layouts = {{.operand = "A",
                              .layout = {layout::Swizzle(3, 3, 3), 0, layout::Layout({128, 64}, {64, 1})},
                              .is_k_major = true,
                              .unit_bits = 16}};
  }
  problem.kernels[0].times = Times{.samples = 10, .median_us = 1.0, .p05_us = 0.9, .p95_us = 1.2};
  profile.problems.push_back(problem);
  profile.problems.push_back({.problem = "gemm without kernels", .operation = "gemm"});
  return to_json(profile);
}

TEST(ProfileFormats, Csv) {
  const std::string csv = to_csv(made_up());
  EXPECT_EQ(std::ranges::count(csv, '\n'), 5);
  EXPECT_THAT(csv, HasSubstr("\"GPU <&\"\">\",gemm,8,8,8,1,1024.000,384.000,0.500,\"gemm A(8,8):f16\",kernel_passed,"));
  EXPECT_THAT(csv, HasSubstr("\"a, \"\"b\"\" & <c>\""));
  const std::size_t columns = static_cast<std::size_t>(std::ranges::count(csv.substr(0, csv.find('\n')), ','));
  EXPECT_EQ(columns, 37u);
}

TEST(ProfileFormats, Junit) {
  const std::string xml = to_junit(made_up());
  EXPECT_THAT(xml, HasSubstr("hostname=\"GPU &lt;&amp;&quot;&gt;\" tests=\"5\" failures=\"2\" skipped=\"2\""));
  EXPECT_THAT(xml, HasSubstr("<failure type=\"wrong\" message=\"a, &quot;b&quot; &amp; &lt;c&gt;\"/>"));
  EXPECT_THAT(xml, HasSubstr("name=\"kernel_passed\" time=\"0.000001000\"/>"));
}

TEST(ProfileFormats, HtmlIsSelfContained) {
  const std::string html = to_html(made_up());
  EXPECT_THAT(html, AllOf(HasSubstr("<svg id=\"roofline\""), HasSubstr("<circle class=\"point\""),
                          HasSubstr("GPU &lt;&amp;&quot;&gt;"), HasSubstr("aria-label=\"tiles of D\"")));
  EXPECT_THAT(html, AllOf(Not(HasSubstr("http:")), Not(HasSubstr("https:")), Not(HasSubstr("src=\"/")),
                          Not(HasSubstr("No time in this report is measured"))));
  EXPECT_THAT(html, AllOf(HasSubstr("alt=\"A in shared memory\" src=\"data:image/svg+xml,%3Csvg"),
                          HasSubstr("128 lines along K of 64 elements, Sw&lt;3,3,3&gt; o 0 o (128,64):(64,1)")));
}

TEST(ProfileFormats, LayoutsThatDoNotFitAreNotDrawn) {
  for (const char* const layout : {"", "(8,64", "64:1", "(8,64):(-64,-1)"}) {
    const std::string profile =
        std::regex_replace(made_up(), std::regex(R"(Sw<3,3,3> o 0 o \(128,64\):\(64,1\))"), layout);
    EXPECT_THAT(to_html(profile), Not(HasSubstr("in shared memory"))) << layout;
  }
}

TEST(ProfileFormats, OtherTextsAreRefused) {
  for (const char* const text :
       {"", "[]", "{}", "{\"schema\": 2}", "{\"schema\": 1}", "{\"schema\": 1, \"problems\": [3]}",
        "{\"schema\": 1, \"problems\": [], \"device\": 3}",
        "{\"schema\":1,\"device\":\"d\",\"target\":\"t\",\"problems\":[{\"problem\":\"p\",\"kernels\":[{}]}]}",
        "{\"schema\":1,\"device\":\"d\",\"target\":\"t\",\"problems\":[{\"problem\":\"p\",\"group\":3,"
        "\"kernels\":[{\"kernel\":\"k\",\"times\":\"x\",\"reason\":7,\"instructions\":{\"a\":\"b\"},\"disposition\":[]}"
        "]}]}"}) {
    for (const auto format : {to_table, to_csv, to_junit, to_html}) EXPECT_THROW(format(text), InvalidArgument) << text;
  }
}

}  // namespace
}  // namespace tilewright::profile
