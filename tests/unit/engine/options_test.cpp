// Engine options and the environment variables that set them.
#include "tilewright/engine/options.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "tilewright/base/environment_variables.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/emulator/checks.hpp"
#include "tilewright/engine/engine.hpp"
#include "tilewright/runtime/cuda_device.hpp"

namespace tilewright::engine {
namespace {

class EnvironmentOptions : public testing::Test {
 protected:
  void SetUp() override {
    for (const EnvironmentVariable& variable : kEnvironmentVariables) ::unsetenv(variable.name);
  }
  void TearDown() override { SetUp(); }
};

void expect_defaults(const Options& options) {
  EXPECT_EQ(options.device, "auto");
  EXPECT_EQ(options.toolchain.backend, compile::Backend::nvrtc);
  EXPECT_EQ(options.toolchain.cuda_home, "");
  EXPECT_EQ(options.toolchain.mlir_library, "");
  EXPECT_EQ(options.toolchain.dump_dir, "");
  EXPECT_EQ(options.cache_dir, "");
  EXPECT_TRUE(options.cache_on_disk);
  EXPECT_EQ(options.cache_max_bytes, std::int64_t{2} << 30);
  EXPECT_EQ(options.compile_threads, 0);
  EXPECT_EQ(options.emulator_steps_per_cta, emulator::kDefaultStepsPerCta);
  EXPECT_FALSE(options.emulator_checks_global);
  EXPECT_EQ(options.tuning, Tuning::use);
  EXPECT_EQ(options.first_use, FirstUse::fastest_kernel);
  EXPECT_FALSE(options.overlap_launches);
  EXPECT_EQ(options.required, registry::Promises());
}

TEST_F(EnvironmentOptions, HaveDefaults) { expect_defaults(Options::from_environment()); }

TEST_F(EnvironmentOptions, HaveTheDocumentedDefaults) {
  for (const EnvironmentVariable& variable : kEnvironmentVariables) {
    ::setenv(variable.name, variable.default_value, 1);
  }
  expect_defaults(Options::from_environment());
}

TEST_F(EnvironmentOptions, AreReadFromTheEnvironment) {
  ::setenv("TILEWRIGHT_DEVICE", "emulator:sm_80", 1);
  ::setenv("TILEWRIGHT_COMPILER", "nvcc", 1);
  ::setenv("TILEWRIGHT_CUDA_HOME", "/opt/cuda", 1);
  ::setenv("TILEWRIGHT_MLIR_LIBRARY", "/opt/libtilewright_mlir.so", 1);
  ::setenv("TILEWRIGHT_CACHE_DIR", "/somewhere", 1);
  ::setenv("TILEWRIGHT_CACHE_DISABLE", "1", 1);
  ::setenv("TILEWRIGHT_CACHE_MAX_BYTES", "1000000", 1);
  ::setenv("TILEWRIGHT_JOBS", "3", 1);
  ::setenv("TILEWRIGHT_DUMP_DIR", "/dumps", 1);
  ::setenv("TILEWRIGHT_EMULATOR_STEPS", "18446744073709551615", 1);
  ::setenv("TILEWRIGHT_EMULATOR_CHECK_GLOBAL", "1", 1);
  ::setenv("TILEWRIGHT_TUNING", "on_first_use", 1);
  ::setenv("TILEWRIGHT_FIRST_USE", "fastest_start", 1);
  ::setenv("TILEWRIGHT_OVERLAP_LAUNCHES", "1", 1);
  ::setenv("TILEWRIGHT_BATCH_INVARIANT", "1", 1);
  const Options options = Options::from_environment();
  EXPECT_EQ(options.device, "emulator:sm_80");
  EXPECT_EQ(options.toolchain.backend, compile::Backend::nvcc);
  EXPECT_EQ(options.toolchain.cuda_home, "/opt/cuda");
  EXPECT_EQ(options.toolchain.mlir_library, "/opt/libtilewright_mlir.so");
  EXPECT_EQ(options.toolchain.dump_dir, "/dumps");
  EXPECT_EQ(options.cache_dir, "/somewhere");
  EXPECT_FALSE(options.cache_on_disk);
  EXPECT_EQ(options.cache_max_bytes, 1000000);
  EXPECT_EQ(options.compile_threads, 3);
  EXPECT_EQ(options.emulator_steps_per_cta, ~std::uint64_t{0});
  EXPECT_TRUE(options.emulator_checks_global);
  EXPECT_EQ(options.tuning, Tuning::on_first_use);
  EXPECT_EQ(options.first_use, FirstUse::fastest_start);
  EXPECT_TRUE(options.overlap_launches);
  EXPECT_EQ(options.required, (registry::Promises{.batch_invariant = true}));
  ::setenv("TILEWRIGHT_DETERMINISTIC", "1", 1);
  EXPECT_EQ(Options::from_environment().required, (registry::Promises{.deterministic = true, .batch_invariant = true}));
}

TEST_F(EnvironmentOptions, EmptyIsUnset) {
  for (const EnvironmentVariable& variable : kEnvironmentVariables) ::setenv(variable.name, "", 1);
  expect_defaults(Options::from_environment());
}

TEST_F(EnvironmentOptions, BadValuesNameTheirVariable) {
  const std::vector<std::pair<const char*, const char*>> bad{{"TILEWRIGHT_COMPILER", "clang"},
                                                             {"TILEWRIGHT_CACHE_DISABLE", "maybe"},
                                                             {"TILEWRIGHT_DETERMINISTIC", "-1"},
                                                             {"TILEWRIGHT_CACHE_MAX_BYTES", "2 GiB"},
                                                             {"TILEWRIGHT_CACHE_MAX_BYTES", "99999999999999999999"},
                                                             {"TILEWRIGHT_CACHE_MAX_BYTES", "-1"},
                                                             {"TILEWRIGHT_JOBS", "-2"},
                                                             {"TILEWRIGHT_JOBS", "1.5"},
                                                             {"TILEWRIGHT_JOBS", " 4"},
                                                             {"TILEWRIGHT_EMULATOR_STEPS", "-1"},
                                                             {"TILEWRIGHT_EMULATOR_STEPS", "1e9"},
                                                             {"TILEWRIGHT_TUNING", "always"},
                                                             {"TILEWRIGHT_FIRST_USE", "now"}};
  for (const auto& [variable, value] : bad) {
    ::setenv(variable, value, 1);
    try {
      Options::from_environment();
      ADD_FAILURE() << variable << "=" << value << " was accepted";
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find(variable), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(value), std::string::npos) << error.what();
    }
    ::unsetenv(variable);
  }
}

TEST_F(EnvironmentOptions, FlagsHaveWords) {
  for (const auto& [text, expected] : {std::pair{"1", true},
                                       {"2", true},
                                       {"true", true},
                                       {"Yes", true},
                                       {"ON", true},
                                       {"0", false},
                                       {"false", false},
                                       {"no", false},
                                       {"Off", false}}) {
    for (const char* variable :
         {"TILEWRIGHT_CACHE_DISABLE", "TILEWRIGHT_EMULATOR_CHECK_GLOBAL", "TILEWRIGHT_OVERLAP_LAUNCHES",
          "TILEWRIGHT_DETERMINISTIC", "TILEWRIGHT_BATCH_INVARIANT"})
      ::setenv(variable, text, 1);
    const Options options = Options::from_environment();
    EXPECT_EQ(!options.cache_on_disk, expected) << text;
    EXPECT_EQ(options.emulator_checks_global, expected) << text;
    EXPECT_EQ(options.overlap_launches, expected) << text;
    EXPECT_EQ(options.required, (registry::Promises{.deterministic = expected, .batch_invariant = expected})) << text;
  }
}

Options on(const std::string& device) {
  Options options;
  options.device = device;
  options.cache_on_disk = false;
  return options;
}

TEST(OpenDevice, PassesTheStepLimitToTheEmulator) {
  Options options = on("emulator");
  options.emulator_steps_per_cta = 5000;
  const auto device = open_device(options);
  constexpr std::string_view kEndless =
      ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\nLOOP: bra LOOP;\n}\n";
  try {
    device->load(runtime::Image{{}, kEndless}, "k", 0)->launch({}, {});
    FAIL() << "the kernel ended";
  } catch (const EmulationError& error) {
    EXPECT_NE(std::string(error.what()).find("over its budget of 5000"), std::string::npos) << error.what();
  }
}

// Each of the two CTAs stores its number to the same word.
TEST(OpenDevice, PassesTheCheckOfGlobalMemoryToTheEmulator) {
  constexpr std::string_view kRace =
      ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 to)\n{\n.reg .u64 %to;\n"
      ".reg .u32 %block;\nld.param.u64 %to, [to];\nmov.u32 %block, %ctaid.x;\nst.global.u32 [%to], %block;\nret;\n}\n";
  for (const bool checks : {false, true}) {
    Options options = on("emulator");
    options.emulator_checks_global = checks;
    const auto device = open_device(options);
    const runtime::DeviceBuffer word(device, 4);
    const auto launch = [&] {
      const std::uint64_t address = word.address();
      device->load(runtime::Image{{}, kRace}, "k", 0)
          ->launch({.grid = {2, 1, 1}}, std::as_bytes(std::span(&address, 1)));
    };
    if (checks) {
      EXPECT_THROW(launch(), emulator::EmulationFinding);
    } else {
      EXPECT_NO_THROW(launch());
    }
  }
}

TEST(OpenDevice, RefusesNumbersOutOfRange) {
  const auto reason = [](const auto& change) {
    Options options = on("emulator");
    change(options);
    try {
      Engine engine(options);
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(reason([](Options& o) { o.pool_maximum_bytes = -1; }),
            "Options::pool_maximum_bytes must be at least 0, got -1");
  EXPECT_EQ(reason([](Options& o) { o.pool_initial_bytes = -2; }),
            "Options::pool_initial_bytes must be at least 0, got -2");
  EXPECT_EQ(reason([](Options& o) { o.pool_initial_bytes = 2048, o.pool_maximum_bytes = 1024; }),
            "Options::pool_initial_bytes must be at most pool_maximum_bytes, 1024, got 2048");
  EXPECT_EQ(reason([](Options& o) { o.compile_threads = -3; }), "Options::compile_threads must be at least 0, got -3");
  EXPECT_EQ(reason([](Options& o) { o.cache_max_bytes = -1; }), "Options::cache_max_bytes must be at least 0, got -1");
  EXPECT_EQ(reason([](Options& o) { o.max_loaded_kernels = 0; }),
            "Options::max_loaded_kernels must be at least 1, got 0");
  EXPECT_EQ(reason([](Options& o) { o.max_remembered_calls = -1; }),
            "Options::max_remembered_calls must be at least 1, got -1");
  EXPECT_EQ(reason([](Options& o) { o.max_rankings = 0; }), "Options::max_rankings must be at least 1, got 0");
  EXPECT_EQ(reason([](Options& o) { o.toolchain.timeout_s = -0.5; }),
            "Options::toolchain.timeout_s must be at least 0, got -0.5");
  EXPECT_EQ(reason([](Options& o) { o.emulator_progress_seconds = std::nan(""); }),
            "Options::emulator_progress_seconds must be at least 0, got nan");
  EXPECT_EQ(reason([](Options& o) { o.pool_initial_bytes = 1024; }), "accepted");
}

TEST(OpenDevice, OpensEmulators) {
  EXPECT_EQ(open_device(on("emulator:sm_80"))->properties().name, "emulator:sm_80");
  EXPECT_EQ(open_device(on("emulator:sm_90a"))->properties().target, kSm90a);
  EXPECT_EQ(open_device(on("emulator:sm_90"))->properties().target, kSm90a) << "a device has all features";
  EXPECT_EQ(open_device(on("emulator"))->properties().name, "emulator:sm_90a");
  EXPECT_TRUE(open_device(on("emulator"))->properties().emulated);
}

TEST(OpenDevice, AutoIsTheFirstGpuOrTheEmulator) {
  const auto device = open_device(on("auto"));
  EXPECT_EQ(device->properties().emulated, runtime::cuda_device_count() == 0);
}

TEST(OpenDevice, RefusesOtherNames) {
  for (const char* name : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:99999999999", "cpu:0",
                           "emulator:", "emulator:sm_70", "emulator:hopper", "EMULATOR", ":", "cuda:0:0"}) {
    EXPECT_THROW(open_device(on(name)), InvalidArgument) << "'" << name << "'";
  }
  try {
    open_device(on("tpu\n0"));
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << "the message must be printable";
  }
}

TEST(OpenDevice, ThrowsForAMissingGpu) {
  EXPECT_THROW(open_device(on("cuda:63")), Error);
  EXPECT_THROW(Engine(on("cuda:63")), Error);
}

}  // namespace
}  // namespace tilewright::engine
