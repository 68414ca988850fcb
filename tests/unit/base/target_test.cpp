// Names of targets, which code a target runs, and the table of features.
#include "tilewright/base/target.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "tilewright/base/target_features.hpp"

namespace tilewright {
namespace {

constexpr Target kSm90{90};
constexpr Target kSm100{100};
constexpr Target kSm100f{100, FeatureSet::family_specific};
constexpr Target kSm100a{100, FeatureSet::architecture_specific};
constexpr Target kSm103{103};
constexpr Target kSm103f{103, FeatureSet::family_specific};
constexpr Target kSm103a{103, FeatureSet::architecture_specific};
constexpr Target kSm110a{110, FeatureSet::architecture_specific};
constexpr Target kSm120f{120, FeatureSet::family_specific};
constexpr Target kSm120a{120, FeatureSet::architecture_specific};
constexpr Target kSm121a{121, FeatureSet::architecture_specific};

TEST(Targets, ParseWhatTheyPrint) {
  for (const char* text : {"sm_80",   "sm_86",   "sm_87",   "sm_88",   "sm_89",   "sm_90",  "sm_90a",  "sm_100",
                           "sm_100f", "sm_100a", "sm_103",  "sm_103f", "sm_103a", "sm_110", "sm_110f", "sm_110a",
                           "sm_120",  "sm_120f", "sm_120a", "sm_121",  "sm_121f", "sm_121a"}) {
    const Result<Target> parsed = parse_target(text);
    ASSERT_TRUE(parsed) << parsed.reason();
    EXPECT_EQ(parsed->name(), text);
  }
  EXPECT_EQ(*parse_target("sm_100f"), kSm100f);
  EXPECT_EQ(kSm90a.virtual_name(), "compute_90a");
  EXPECT_EQ(kSm100f.virtual_name(), "compute_100f");
  EXPECT_EQ(kSm100.virtual_name(), "compute_100");
}

TEST(Targets, OfAComputeCapabilityHaveAllFeaturesOfTheGpu) {
  EXPECT_EQ(*parse_target("80"), kSm80);
  EXPECT_EQ(*parse_target("90"), kSm90a);
  EXPECT_EQ(*parse_target("90a"), kSm90a);
  EXPECT_EQ(*parse_target("100"), kSm100a);
  EXPECT_EQ(*parse_target("100f"), kSm100f);
  EXPECT_EQ(device_target(89), Target{89});
  EXPECT_EQ(device_target(90), kSm90a);
  EXPECT_EQ(device_target(121), kSm121a);
}

TEST(Targets, AreRefusedWhereCudaHasNone) {
  for (const char* text :
       {"", "sm_", "a", "sm_a", "sm_75", "sm_80x", "sm_80a", "sm_89f", "sm_90f", "sm_101", "sm_100af", "sm_100fa",
        "8.0", "sm_-80", "sm_+80", "emulator:sm_80", "sm_800", "sm_99999999999", "SM_80"}) {
    const Result<Target> parsed = parse_target(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.reason().find(std::string("'") + text + "'"), std::string::npos);
  }
}

TEST(Targets, AreOrderedByArchitectureThenFeatureSet) {
  const std::vector<Target> ascending{kSm80, kSm90, kSm90a, kSm100, kSm100f, kSm100a, kSm103, kSm103f, kSm103a};
  EXPECT_TRUE(std::ranges::is_sorted(ascending));
}

TEST(Targets, RunPtxOfEarlierArchitectures) {
  for (const Target& device : {kSm90a, kSm100a, kSm103a, kSm110a, kSm120a}) {
    EXPECT_TRUE(device.runs_ptx(kSm80)) << device.name();
    EXPECT_TRUE(device.runs_ptx(kSm90)) << device.name();
    EXPECT_FALSE(kSm80.runs_ptx(Target{device.sm})) << device.name();
    EXPECT_EQ(device.runs_ptx(kSm90a), device == kSm90a) << device.name();
  }
}

// CUDA C++ Programming Guide, table "Family-specific compatibility".
TEST(Targets, RunFamilySpecificCodeOfTheirFamilyOnly) {
  for (const auto& [code, devices] : std::vector<std::pair<Target, std::set<Target>>>{
           {kSm100f, {kSm100a, kSm103a}}, {kSm103f, {kSm103a}}, {kSm120f, {kSm120a, kSm121a}}}) {
    for (const Target& device : {kSm80, kSm90a, kSm100a, kSm103a, kSm110a, kSm120a, kSm121a}) {
      EXPECT_EQ(device.runs_ptx(code), devices.contains(device)) << code.name() << " on " << device.name();
      EXPECT_EQ(device.runs_cubin(code), devices.contains(device)) << code.name() << " on " << device.name();
    }
  }
  EXPECT_FALSE(kSm103.has_features_of(kSm100f)) << "PTX for sm_103 may not use features of the family";
  EXPECT_TRUE(kSm103f.has_features_of(kSm100f));
}

TEST(Targets, RunArchitectureSpecificCodeOfTheirOwnOnly) {
  for (const Target& code : {kSm90a, kSm100a, kSm103a, kSm120a}) {
    for (const Target& device : {kSm80, kSm90, kSm90a, kSm100f, kSm100a, kSm103a, kSm120a, kSm121a}) {
      EXPECT_EQ(device.runs_ptx(code), device == code) << code.name() << " on " << device.name();
      EXPECT_EQ(device.runs_cubin(code), device == code) << code.name() << " on " << device.name();
    }
  }
}

TEST(Targets, RunCubinsOfTheSameMajorVersionOnly) {
  const Target sm86{86};
  EXPECT_TRUE(sm86.runs_cubin(kSm80));
  EXPECT_FALSE(kSm80.runs_cubin(sm86));
  EXPECT_FALSE(kSm90a.runs_cubin(kSm80));
  EXPECT_TRUE(kSm90a.runs_cubin(kSm90));
  EXPECT_TRUE(kSm103a.runs_cubin(kSm100));
  EXPECT_FALSE(kSm120a.runs_cubin(kSm100));
}

TEST(TargetFeatures, HaveOneRowEachInOrder) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < target_features().size(); ++i) {
    const TargetFeatureRow& row = target_features()[i];
    EXPECT_EQ(static_cast<std::size_t>(row.feature), i) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.required.empty()) << row.name;
  }
  EXPECT_EQ(target_features().back().feature, TargetFeature::block_scaled_mma) << "a feature has no row";
}

TEST(TargetFeatures, FollowTheFeatureSetOfTheTarget) {
  EXPECT_FALSE(has_feature(Target{75}, TargetFeature::cp_async));
  EXPECT_TRUE(has_feature(kSm80, TargetFeature::cp_async));
  EXPECT_TRUE(has_feature(kSm121a, TargetFeature::cp_async));
  EXPECT_TRUE(has_feature(kSm90, TargetFeature::tma));
  EXPECT_FALSE(has_feature(kSm90, TargetFeature::wgmma)) << "wgmma is architecture-specific";
  EXPECT_TRUE(has_feature(kSm90a, TargetFeature::wgmma));
  EXPECT_FALSE(has_feature(kSm100a, TargetFeature::wgmma));
  EXPECT_FALSE(has_feature(kSm100, TargetFeature::tcgen05));
  EXPECT_TRUE(has_feature(kSm103f, TargetFeature::tcgen05));
  EXPECT_TRUE(has_feature(kSm110a, TargetFeature::tcgen05));
  EXPECT_FALSE(has_feature(kSm120a, TargetFeature::tcgen05));
  EXPECT_TRUE(has_feature(kSm100a, TargetFeature::tcgen05_i8));
  EXPECT_FALSE(has_feature(kSm103a, TargetFeature::tcgen05_i8));
  EXPECT_TRUE(has_feature(kSm121a, TargetFeature::block_scaled_mma));
}

TEST(TargetFeatures, AreRefusedWithWhatTheyNeed) {
  EXPECT_TRUE(check_feature(kSm90a, TargetFeature::wgmma));
  const Support refused = check_feature(kSm80, TargetFeature::wgmma);
  EXPECT_EQ(refused.reason(), "wgmma needs sm_90a, the target is sm_80");
  EXPECT_EQ(refused.refusal().code, RefusalCode::architecture);
  EXPECT_EQ(check_feature(kSm120a, TargetFeature::tcgen05).reason(),
            "tcgen05 needs sm_100f or sm_110f, the target is sm_120a");
}

}  // namespace
}  // namespace tilewright
