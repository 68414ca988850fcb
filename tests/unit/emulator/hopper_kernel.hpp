// Shared by the tests of sm_90 instructions: kernels with tensor maps as parameters, and PTX for mbarriers.
#pragma once

#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "lane_kernel.hpp"
#include "tilewright/base/tensor_map.hpp"

namespace tilewright::emulator {

/// Packs kernel parameters: tensor maps first, then addresses.
inline std::vector<std::byte> pack_maps(const std::vector<EncodedTensorMap>& maps,
                                        const std::vector<runtime::DeviceAddress>& addresses) {
  std::vector<std::byte> bytes(maps.size() * sizeof(EncodedTensorMap) + addresses.size() * 8);
  if (!maps.empty()) std::memcpy(bytes.data(), maps.data(), maps.size() * sizeof(EncodedTensorMap));
  if (!addresses.empty()) {
    std::memcpy(bytes.data() + maps.size() * sizeof(EncodedTensorMap), addresses.data(), addresses.size() * 8);
  }
  return bytes;
}

struct HopperLaunch {
  runtime::Dim3 block{128, 1, 1};
  runtime::Dim3 grid{};
  runtime::Dim3 cluster{};
  std::uint32_t dynamic_smem_bytes = 0;
  bool cooperative = false;
};

inline void launch_hopper(runtime::Device& device, std::string_view ptx, const std::vector<std::byte>& parameters,
                          const HopperLaunch& how) {
  const auto kernel = device.load(runtime::Image{{}, ptx}, "k", how.dynamic_smem_bytes);
  runtime::LaunchConfig config;
  config.grid = how.grid;
  config.block = how.block;
  config.cluster = how.cluster;
  config.dynamic_smem_bytes = how.dynamic_smem_bytes;
  config.cooperative = how.cooperative;
  kernel->launch(config, parameters);
}

/// A kernel `k(map a, map b, out)`. %t is the thread index, %first is true for thread 0, %rank is the CTA's rank in its
/// cluster, %base is the 1024-aligned start of dynamic shared memory, and %bars that of 16 mbarriers, `bars`.
inline std::string hopper_kernel(std::string_view body, std::string_view directives = "") {
  return fmt::format(R"({}
.extern .shared .align 1024 .b8 dynamic[];
.visible .entry k(.param .align 64 .b8 a[128], .param .align 64 .b8 b[128], .param .u64 out) {}
{{
  .shared .align 8 .b8 bars[128];
  .reg .u32 %t, %base, %bars, %rank, %r<64>;
  .reg .u64 %map_a, %map_b, %out, %x<32>;
  .reg .b16 %h<16>;
  .reg .f32 %f<256>;
  .reg .b32 %d<256>;
  .reg .pred %first, %p, %q;
  mov.u32 %t, %tid.x;
  mov.u32 %base, dynamic;
  mov.u32 %bars, bars;
  mov.u32 %rank, %cluster_ctarank;
  setp.eq.u32 %first, %t, 0;
  mov.b64 %map_a, a;
  cvta.param.u64 %map_a, %map_a;
  mov.b64 %map_b, b;
  cvta.param.u64 %map_b, %map_b;
  ld.param.u64 %out, [out];
{}
  ret;
}}
)",
                     kHeader, directives, body);
}

/// Waits for the phase parity of the mbarrier at byte `offset` of `bars`. Labels end in `name`.
inline std::string wait_for(std::string_view name, int offset, std::string_view parity) {
  return fmt::format(
      "WAIT_{0}:\nmbarrier.try_wait.parity.shared::cta.b64 %p, [%bars+{1}], {2};\n@%p bra DONE_{0};\nbra WAIT_{0};\n"
      "DONE_{0}:\n",
      name, offset, parity);
}

/// Thread 0 initialises one mbarrier per arrival count; a barrier then lets all threads use them.
inline std::string init_bars(std::initializer_list<int> counts) {
  std::string text;
  int offset = 0;
  for (const int count : counts) {
    text += fmt::format("@%first mbarrier.init.shared::cta.b64 [%bars+{}], {};\n", offset, count);
    offset += 8;
  }
  return text + "@%first fence.mbarrier_init.release.cluster;\nbar.sync 0;\n";
}

}  // namespace tilewright::emulator
