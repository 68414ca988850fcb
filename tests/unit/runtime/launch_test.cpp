// Checks of launches, at each limit and one past it.
#include "tilewright/runtime/launch.hpp"

#include <gmock/gmock.h>

#include <functional>

namespace tilewright::runtime {
namespace {

using testing::HasSubstr;

constexpr LaunchLimits kDevice{.grid = {2147483647, 65535, 65535},
                               .block = {1024, 1024, 64},
                               .threads_per_block = 1024,
                               .smem_per_block_bytes = 232448,
                               .clusters = true};
constexpr KernelLimits kKernel{.threads_per_block = 512, .dynamic_smem_bytes = 4096, .parameter_bytes = 24};

Support check(const std::function<void(LaunchConfig&)>& change, std::size_t parameter_bytes = 24) {
  LaunchConfig config{.grid = {8, 4, 2}, .block = {128}, .dynamic_smem_bytes = 0};
  change(config);
  return check_launch(kDevice, kKernel, config, parameter_bytes);
}

struct LaunchCase {
  const char* name;
  std::function<void(LaunchConfig&)> change;
  const char* refusal;  // empty: accepted
};

class CheckLaunch : public testing::TestWithParam<LaunchCase> {};

TEST_P(CheckLaunch, AcceptsTheLimitAndRefusesPastIt) {
  const Support support = check(GetParam().change);
  EXPECT_EQ(static_cast<bool>(support), *GetParam().refusal == '\0') << support.reason();
  EXPECT_THAT(support.reason(), HasSubstr(GetParam().refusal));
}

INSTANTIATE_TEST_SUITE_P(
    Limits, CheckLaunch,
    testing::Values(LaunchCase{"grid_x_most",
                               [](LaunchConfig& c) {
                                 c.grid = {2147483647, 1, 1};
                               },
                               ""},
                    LaunchCase{"grid_y_most",
                               [](LaunchConfig& c) {
                                 c.grid = {1, 65535, 65535};
                               },
                               ""},
                    LaunchCase{"grid_x_past",
                               [](LaunchConfig& c) {
                                 c.grid = {2147483648u, 1, 1};
                               },
                               "2147483648x1x1"},
                    LaunchCase{"grid_y_past",
                               [](LaunchConfig& c) {
                                 c.grid = {1, 65536, 1};
                               },
                               "1x65536x1"},
                    LaunchCase{"grid_zero", [](LaunchConfig& c) { c.grid.x = 0; }, "0x4x2"},
                    LaunchCase{"block_most",
                               [](LaunchConfig& c) {
                                 c.block = {512, 1, 1};
                               },
                               ""},
                    LaunchCase{"block_kernel",
                               [](LaunchConfig& c) {
                                 c.block = {513, 1, 1};
                               },
                               "513 threads"},
                    LaunchCase{"block_device",
                               [](LaunchConfig& c) {
                                 c.block = {1024, 2, 1};
                               },
                               "2048"},
                    LaunchCase{"block_z",
                               [](LaunchConfig& c) {
                                 c.block = {1, 1, 65};
                               },
                               "1x1x65"},
                    LaunchCase{"block_zero", [](LaunchConfig& c) { c.block.z = 0; }, "128x1x0"},
                    LaunchCase{"smem_most", [](LaunchConfig& c) { c.dynamic_smem_bytes = 4096; }, ""},
                    LaunchCase{"smem_past", [](LaunchConfig& c) { c.dynamic_smem_bytes = 4097; }, "got 4097"},
                    LaunchCase{"cluster",
                               [](LaunchConfig& c) {
                                 c.cluster = {4, 2, 1};
                               },
                               ""},
                    LaunchCase{"cluster_of_16",
                               [](LaunchConfig& c) {
                                 c.cluster = {8, 2, 1};
                               },
                               "16 CTAs"},
                    LaunchCase{"cluster_of_none",
                               [](LaunchConfig& c) {
                                 c.cluster = {0, 1, 1};
                               },
                               "0 CTAs"},
                    LaunchCase{"cluster_does_not_divide",
                               [](LaunchConfig& c) {
                                 c.cluster = {3, 1, 1};
                               },
                               "3x1x1"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(CheckLaunchParameters, MustHaveTheSizeOfTheKernel) {
  EXPECT_TRUE(check([](LaunchConfig&) {}, 24));
  EXPECT_THAT(check([](LaunchConfig&) {}, 16).reason(), HasSubstr("24 bytes of parameters, got 16"));
  EXPECT_FALSE(check([](LaunchConfig&) {}, 0));
}

TEST(CheckLaunchParameters, AreLimitedIfTheSizeIsNotKnown) {
  const LaunchConfig config{.block = {32}};
  EXPECT_TRUE(check_launch(kDevice, {.threads_per_block = 512}, config, kMaxParameterBytes));
  EXPECT_FALSE(check_launch(kDevice, {.threads_per_block = 512}, config, kMaxParameterBytes + 1));
}

TEST(CheckLaunchClusters, NeedADeviceWithClusterLaunch) {
  LaunchLimits device = kDevice;
  device.clusters = false;
  EXPECT_TRUE(check_launch(device, kKernel, {.block = {32}}, 24));
  EXPECT_THAT(check_launch(device, kKernel, {.grid = {2}, .block = {32}, .cluster = {2}}, 24).reason(),
              HasSubstr("2x1x1"));
}

}  // namespace
}  // namespace tilewright::runtime
