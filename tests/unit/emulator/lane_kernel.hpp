// Runs one or a few PTX instructions on the 32 lanes of a warp, and returns the result of each lane.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/emulator/checks.hpp"
#include "tilewright/emulator/device.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::emulator {

inline constexpr std::string_view kHeader = ".version 9.0\n.target sm_90a\n.address_size 64\n";

inline std::shared_ptr<runtime::Device> test_device(EmulatorOptions options = {}) {
  options.threads = options.threads == 0 ? 1 : options.threads;
  return make_emulated_device(kSm90a, options);
}

/// Device memory with the contents of a host vector.
template <class T>
runtime::DeviceBuffer upload(const std::shared_ptr<runtime::Device>& device, const std::vector<T>& values) {
  runtime::DeviceBuffer buffer(device, values.size() * sizeof(T));
  device->copy_in(buffer.address(), values.data(), values.size() * sizeof(T), nullptr);
  return buffer;
}

template <class T>
std::vector<T> download(runtime::Device& device, const runtime::DeviceBuffer& buffer) {
  std::vector<T> values(buffer.bytes() / sizeof(T));
  device.copy_out(values.data(), buffer.address(), buffer.bytes(), nullptr);
  return values;
}

/// Packs the parameters of a kernel that takes addresses.
inline std::vector<std::byte> pack_addresses(const std::vector<runtime::DeviceAddress>& addresses) {
  std::vector<std::byte> bytes(addresses.size() * sizeof(runtime::DeviceAddress));
  if (!bytes.empty()) std::memcpy(bytes.data(), addresses.data(), bytes.size());
  return bytes;
}

inline void launch(runtime::Device& device, std::string_view ptx, const std::string& symbol,
                   const std::vector<runtime::DeviceAddress>& addresses, runtime::Dim3 block, runtime::Dim3 grid = {},
                   std::uint32_t dynamic_smem_bytes = 0) {
  const auto kernel = device.load(runtime::Image{{}, ptx}, symbol, dynamic_smem_bytes);
  runtime::LaunchConfig config;
  config.grid = grid;
  config.block = block;
  config.dynamic_smem_bytes = dynamic_smem_bytes;
  kernel->launch(config, pack_addresses(addresses));
}

/// The finding that `run` throws; if it throws none, one with an empty detail.
template <class F>
Finding finding_of(F&& run) {
  try {
    run();
  } catch (const EmulationFinding& caught) {
    return caught.finding();
  }
  return Finding{};
}

/// A PTX register type, and the size of its values on the host.
struct LaneType {
  std::string_view ptx;
  int bytes;
};

/// A kernel for one warp: each lane loads its sources %s0, %s1, ... of the given types, `body` computes %d, and the
/// lane stores it. `declarations` precede the body.
inline std::string lane_kernel(std::string_view body, LaneType d, const std::vector<LaneType>& sources,
                               std::string_view declarations = "") {
  const auto bits = [](LaneType type) { return type.bytes * 8; };
  std::string text(kHeader);
  text += ".visible .entry k(.param .u64 out";
  for (std::size_t i = 0; i < sources.size(); ++i) text += fmt::format(", .param .u64 in{}", i);
  text += ")\n{\n.reg .u32 %lane;\n.reg .u64 %at, %wide;\n";
  text += fmt::format(".reg .{} %d;\n", d.ptx);
  for (std::size_t i = 0; i < sources.size(); ++i) text += fmt::format(".reg .{} %s{};\n", sources[i].ptx, i);
  text += std::string(declarations) + "mov.u32 %lane, %tid.x;\ncvt.u64.u32 %wide, %lane;\n";
  for (std::size_t i = 0; i < sources.size(); ++i) {
    text += fmt::format("ld.param.u64 %at, [in{}];\nmad.lo.u64 %at, %wide, {}, %at;\nld.global.b{} %s{}, [%at];\n", i,
                        sources[i].bytes, bits(sources[i]), i);
  }
  text += std::string(body) + "\n";
  text += fmt::format("ld.param.u64 %at, [out];\nmad.lo.u64 %at, %wide, {}, %at;\nst.global.b{} [%at], %d;\nret;\n}}\n",
                      d.bytes, bits(d));
  return text;
}

template <class T>
constexpr LaneType lane_type() {
  if constexpr (std::is_same_v<T, float>) return {"f32", 4};
  if constexpr (std::is_same_v<T, double>) return {"f64", 8};
  if constexpr (sizeof(T) == 2) return {"b16", 2};
  if constexpr (sizeof(T) == 4) return {"b32", 4};
  return {"b64", 8};
}

/// Runs `body` once per value of the longest source; shorter sources repeat.
template <class D, class... S>
std::vector<D> run_lanes(std::string_view body, std::string_view declarations, const std::vector<S>&... sources) {
  const auto device = test_device();
  const std::size_t count = std::max({std::size_t{1}, sources.size()...});
  std::vector<D> results;
  for (std::size_t first = 0; first < count; first += 32) {
    const runtime::DeviceBuffer out = upload(device, std::vector<D>(32));
    std::vector<runtime::DeviceBuffer> buffers;
    std::vector<runtime::DeviceAddress> addresses{out.address()};
    const auto add = [&](const auto& values) {
      std::decay_t<decltype(values)> lanes(32);
      for (std::size_t l = 0; l < 32; ++l) lanes[l] = values[(first + l) % values.size()];
      buffers.push_back(upload(device, lanes));
      addresses.push_back(buffers.back().address());
    };
    (add(sources), ...);
    launch(*device, lane_kernel(body, lane_type<D>(), {lane_type<S>()...}, declarations), "k", addresses, {32, 1, 1});
    const std::vector<D> lanes = download<D>(*device, out);
    results.insert(results.end(), lanes.begin(), lanes.end());
  }
  results.resize(count);
  return results;
}

template <class D, class... S>
std::vector<D> run_instruction(std::string_view body, const std::vector<S>&... sources) {
  return run_lanes<D>(body, "", sources...);
}

/// The finding of a lane_kernel() with this body, at load or at launch.
inline Finding finding_of_body(std::string_view body, std::string_view declarations = "") {
  return finding_of([&] {
    const auto device = test_device();
    const runtime::DeviceBuffer out(device, 128);
    launch(*device, lane_kernel(body, {"b32", 4}, {}, declarations), "k", {out.address()}, {32, 1, 1});
  });
}

}  // namespace tilewright::emulator
