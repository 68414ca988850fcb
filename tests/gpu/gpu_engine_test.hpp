// The fixture of the GPU tests of the engine: an engine on the first GPU.
#pragma once

#include <memory>

#include "gpu_test.hpp"
#include "tilewright/engine/engine.hpp"

namespace tilewright::engine {

class GpuEngineTest : public runtime::GpuTest {
 protected:
  void SetUp() override {
    runtime::GpuTest::SetUp();
    if (IsSkipped()) return;
    Options options = Options::from_environment();
    options.device = "cuda:0";
    options.required = {};  // a call's promises are those that the test requires
    engine_ = std::make_unique<Engine>(options);
  }

  std::unique_ptr<Engine> engine_;
};

}  // namespace tilewright::engine
