// The fixture of runtime tests: a fake driver, which is reset before and checked for leaks after each test.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fake_driver/fake_driver.hpp"
#include "tilewright/runtime/cuda_device.hpp"

namespace tilewright::runtime {

inline const DriverOptions kFakeDriver{.library_path = FAKE_DRIVER_PATH};

class FakeDriverTest : public testing::Test {
 protected:
  FakeDriverTest() {
    void* library = dlopen(FAKE_DRIVER_PATH, RTLD_NOW | RTLD_LOCAL);
    const auto get_state = reinterpret_cast<fake_driver::GetState>(dlsym(library, "fake_driver_state"));
    state_ = get_state();
    *state_ = {};
  }
  ~FakeDriverTest() override {
    EXPECT_EQ(live(), "");
    EXPECT_EQ(state_->bad_releases, 0);
  }

  /// The handles that were created and not released: "stream 1, pool 1".
  std::string live() const {
    std::string text;
    for (const auto& [kind, count] : state_->live) {
      if (count != 0) text += (text.empty() ? "" : ", ") + kind + " " + std::to_string(count);
    }
    return text;
  }
  int calls(const std::string& symbol) const { return state_->calls[symbol]; }

  fake_driver::State* state_;
};

/// A well-formed ELF image of CUDA code: a header, then `sections` empty section headers.
std::vector<std::byte> minimal_cubin(unsigned sections = 2);

/// The message of the Exception that `action` throws. Fails the test if it does not throw.
template <class Exception, class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Exception& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace tilewright::runtime
