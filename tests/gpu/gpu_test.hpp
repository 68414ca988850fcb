// The fixture of the GPU tests, which opens the first GPU or skips the test, and compilation of their kernels.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "tilewright/runtime/cuda_device.hpp"
#include "tilewright/runtime/module.hpp"

namespace tilewright::runtime {

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    if (cuda_device_count(&reason) == 0) GTEST_SKIP() << reason;
    device_ = open_cuda_device(0);
  }

  std::shared_ptr<CudaDevice> device_;
};

/// Compiles `text` for the device and loads its kernel `symbol`.
std::shared_ptr<LoadedKernel> load_kernel(Device& device, const std::string& symbol, const std::string& text,
                                          std::uint32_t dynamic_smem_bytes = 0);

template <class Parameters>
std::span<const std::byte> parameter_bytes(const Parameters& parameters) {
  return std::as_bytes(std::span(&parameters, 1));
}

}  // namespace tilewright::runtime
