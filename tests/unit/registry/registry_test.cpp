// Adding, replacing and removing providers, also concurrently with queries.
#include "tilewright/registry/registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace tilewright::registry {
namespace {

class Named final : public Provider {
 public:
  explicit Named(std::string family) : family_(std::move(family)) {}
  std::string family() const override { return family_; }

 private:
  std::string family_;
};

ProviderPtr named(std::string family) { return std::make_shared<Named>(std::move(family)); }

std::vector<std::string> families(const Registry& registry) {
  std::vector<std::string> all;
  for (const ProviderPtr& provider : registry.snapshot()->providers) all.push_back(provider->family());
  return all;
}

TEST(Registry, AddedComeBeforeShippedInTheirOrder) {
  Registry registry({named("shipped")});
  ASSERT_TRUE(registry.add(named("one")));
  ASSERT_TRUE(registry.add(named("two")));
  EXPECT_THAT(families(registry), testing::ElementsAre("one", "two", "shipped"));
  EXPECT_EQ(registry.snapshot()->added, 2U);
}

TEST(Registry, AFamilyIsRegisteredOnce) {
  Registry registry({named("shipped")});
  const ProviderPtr one = named("one");
  ASSERT_TRUE(registry.add(one));
  EXPECT_TRUE(registry.add(one)) << "the same provider again";
  EXPECT_EQ(registry.add(named("one")).reason(), "the family 'one' is already registered");
  EXPECT_EQ(registry.add(named("shipped")).reason(), "'shipped' is a family shipped with Tilewright");
  EXPECT_EQ(registry.replace(named("shipped")).refusal().code, RefusalCode::duplicate);
  EXPECT_THAT(families(registry), testing::ElementsAre("one", "shipped"));
}

TEST(Registry, ReplacesInPlaceAndRemoves) {
  Registry registry;
  ASSERT_TRUE(registry.add(named("one")));
  ASSERT_TRUE(registry.add(named("two")));
  const auto before = registry.snapshot();
  const ProviderPtr another = named("one");
  ASSERT_TRUE(registry.replace(another));
  EXPECT_EQ(registry.snapshot()->providers.front(), another);
  EXPECT_TRUE(registry.remove("one"));
  EXPECT_FALSE(registry.remove("one"));
  EXPECT_THAT(families(registry), testing::ElementsAre("two"));
  EXPECT_EQ(before->providers.size(), 2U) << "an earlier snapshot does not change";
}

TEST(Registry, RefusesInvalidNames) {
  Registry registry({named("shipped")});
  EXPECT_EQ(registry.add(named("a b\n")).reason(), "the name of a family must be an identifier, got 'a b\\x0a'");
  EXPECT_THROW(static_cast<void>(registry.add(ProviderPtr())), InvalidArgument);
  EXPECT_THROW(registry.remove("shipped"), InvalidArgument);
}

TEST(Registry, ManyThreadsChangeAndReadIt) {
  Registry registry({named("shipped")});
  std::vector<std::thread> threads;
  std::atomic<int> odd = 0;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&, i] {
      const std::string family = fmt::format("family_{}", i % 4);
      for (int round = 0; round < 100; ++round) {
        static_cast<void>(registry.replace(named(family)));
        if (registry.snapshot()->providers.back()->family() != "shipped") ++odd;
        registry.remove(family);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(odd, 0);
  EXPECT_THAT(families(registry), testing::ElementsAre("shipped"));
}

}  // namespace
}  // namespace tilewright::registry
