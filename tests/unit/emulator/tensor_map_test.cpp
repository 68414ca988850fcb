// Instructions that change tensor maps: their results, and the findings if a rule of the tensor-map proxy is broken.
#include <gtest/gtest.h>

#include "hopper_kernel.hpp"

namespace tilewright::emulator {
namespace {

constexpr std::string_view kReplace =
    "@%first tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%base], %x1;\n";
constexpr std::string_view kPublish =
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%out], [%base], 128;\n";
constexpr std::string_view kAcquire = "@%first fence.proxy.tensormap::generic.acquire.gpu [%out], 128;\n";
constexpr std::string_view kExpect = "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bars], 64;\n";
constexpr std::string_view kCopy = R"(
    add.u32 %r1, %base, 256;
    @%first cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%out, {0}], [%bars];
)";

const std::string kLoad = std::string(kExpect) + std::string(kCopy);

/// One warp copies the tensor map of the parameters to shared memory at %base, then does `steps`. %x1 is the address of
/// 16 numbers at byte 1024 of `out`, whose first 128 bytes are for a tensor map. In the end the 16 numbers at shared
/// address %base + 256 are stored to byte 2048.
std::string kernel(std::string_view steps) {
  return hopper_kernel(init_bars({1}) + R"(
    mul.wide.u32 %x0, %t, 4;
    add.u64 %x0, %map_a, %x0;
    ld.u32 %r0, [%x0];
    mad.lo.u32 %r1, %t, 4, %base;
    st.shared.u32 [%r1], %r0;
    add.u64 %x1, %out, 1024;
    bar.sync 0;
)" + std::string(steps) +
                       R"(
    mad.lo.u32 %r1, %t, 4, %base;
    setp.lt.u32 %q, %t, 16;
    @%q ld.shared.u32 %r0, [%r1+256];
    mul.wide.u32 %x0, %t, 4;
    add.u64 %x0, %out, %x0;
    @%q st.global.u32 [%x0+2048], %r0;
)");
}

std::string join(std::initializer_list<std::string_view> steps) {
  std::string all;
  for (const std::string_view step : steps) all += step;
  return all;
}

class TensorMaps : public testing::Test {
 protected:
  /// Runs the kernel and returns what it stored.
  std::vector<std::uint32_t> run(std::string_view steps) {
    std::vector<std::uint32_t> memory(1024, 0);
    for (std::uint32_t i = 0; i < 16; ++i) memory[256 + i] = 100 + i;
    const auto out = upload(device_, memory);
    const auto other = upload(device_, std::vector<std::uint32_t>(16, 7));
    TensorMap map;
    map.type = TensorMapType::u32;
    map.rank = 1;
    map.extents[0] = map.box[0] = 16;
    map.address = other.address();
    launch_hopper(*device_, kernel(steps), pack_maps({device_->encode(map), {}}, {out.address()}),
                  {.block = {32, 1, 1}, .dynamic_smem_bytes = 1024});
    const auto result = download<std::uint32_t>(*device_, out);
    return {result.begin() + 512, result.begin() + 528};
  }

  Finding finding(std::string_view steps) {
    return finding_of([&] { run(steps); });
  }

 private:
  std::shared_ptr<runtime::Device> device_ = test_device();
};

TEST_F(TensorMaps, ACopyLoadsFromTheNewAddress) {
  const std::vector<std::uint32_t> loaded =
      run(join({kReplace, "bar.warp.sync 0xffffffff;\n", kPublish, kAcquire, kLoad, wait_for("A", 0, "0")}));
  for (std::uint32_t i = 0; i < 16; ++i) EXPECT_EQ(loaded[i], 100 + i);
  EXPECT_EQ(run(join({kPublish, kAcquire, kLoad, wait_for("A", 0, "0")})), std::vector<std::uint32_t>(16, 7))
      << "the tensor map as it was";
}

TEST_F(TensorMaps, ElementsBehindANewExtentAreZeros) {
  constexpr std::string_view kShorten =
      "@%first tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%base], 0, 5;\n";
  const std::vector<std::uint32_t> loaded =
      run(join({kReplace, kShorten, "bar.warp.sync 0xffffffff;\n", kPublish, kAcquire, kLoad, wait_for("A", 0, "0")}));
  for (std::uint32_t i = 0; i < 16; ++i) EXPECT_EQ(loaded[i], i < 5 ? 100 + i : 0);
  const Finding empty = finding("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%base], 0, 0;");
  EXPECT_EQ(empty.kind, FindingKind::bad_descriptor) << to_string(empty);
  const Finding rank = finding("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%base], 1, 5;");
  EXPECT_EQ(rank.kind, FindingKind::bad_descriptor) << to_string(rank);
  const Finding stride =
      finding("mov.u64 %x1, 32;\ntensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%base], 0, %x1;");
  EXPECT_EQ(stride.kind, FindingKind::bad_descriptor) << "a tensor map of rank 1 has no stride: " << to_string(stride);
}

TEST_F(TensorMaps, AMissingAcquireIsFound) {
  const Finding found = finding(join({kReplace, kPublish, kLoad, wait_for("A", 0, "0")}));
  EXPECT_EQ(found.kind, FindingKind::missing_tensor_map_fence) << to_string(found);
  EXPECT_NE(found.detail.find("fence.proxy.tensormap::generic.acquire"), std::string::npos) << found.detail;
  const Finding before = finding(join({kReplace, kAcquire, kPublish, kLoad, wait_for("A", 0, "0")}));
  EXPECT_EQ(before.kind, FindingKind::missing_tensor_map_fence) << "acquired before it was written";
  const std::string others = "not.pred %p, %first;\n@%p fence.proxy.tensormap::generic.acquire.gpu [%out], 128;\n";
  EXPECT_EQ(finding(join({kReplace, kExpect, kPublish, others, kCopy})).kind, FindingKind::missing_tensor_map_fence)
      << "acquired by other threads";
  EXPECT_EQ(run(join({kReplace, kExpect, kPublish, others, "bar.sync 0;\n", kCopy, wait_for("A", 0, "0")}))[0], 100U)
      << "acquired by other threads, which this one has synchronised with";
}

TEST_F(TensorMaps, OverwritingAMapOfACopyInFlightIsFound) {
  const std::string wait = wait_for("A", 0, "0");
  EXPECT_EQ(run(join({kReplace, kPublish, kAcquire, kLoad, wait, kReplace, kPublish}))[0], 100U)
      << "overwritten after the copy has completed";
  const Finding found = finding(join({kReplace, kPublish, kAcquire, kLoad, kPublish, wait}));
  EXPECT_EQ(found.kind, FindingKind::async_read_in_flight) << to_string(found);
  EXPECT_NE(found.detail.find("the tensor map at address"), std::string::npos) << found.detail;
}

TEST_F(TensorMaps, BadOperandsAreFound) {
  const auto kind = [&](std::string_view steps) { return finding(steps).kind; };
  EXPECT_EQ(kind("add.u64 %x1, %x1, 8;\n" + std::string(kReplace)), FindingKind::bad_descriptor)
      << "an address that is no multiple of 16";
  EXPECT_EQ(kind("add.u32 %base, %base, 64;\n" + std::string(kReplace)), FindingKind::misaligned_access);
  EXPECT_EQ(kind("add.u64 %out, %out, 64;\n" + std::string(kPublish)), FindingKind::misaligned_access);
  EXPECT_EQ(kind("@%first st.shared.u32 [%base+8], %t;\n" + std::string(kReplace)), FindingKind::bad_descriptor)
      << "no tensor map";
  EXPECT_EQ(kind("@%first st.shared.u32 [%base+8], %t;\n" + std::string(kPublish)), FindingKind::bad_descriptor);
  EXPECT_EQ(kind("mul.wide.u32 %x0, %t, 128;\nadd.u64 %out, %out, %x0;\n" + std::string(kPublish)),
            FindingKind::barrier_divergence)
      << "each lane to another address";
}

/// Thread 0 writes all fields of a map of 16 numbers of 32 bits over zeros. The map is in shared memory, or in global.
std::string built(std::string_view space, std::string_view map) {
  std::string steps = "mov.u32 %r2, 16;\nmov.u32 %r3, 1;\n";
  for (const std::string_view field :
       {"elemtype.{0}.b1024.b32 [{1}], 2", "box_dim.{0}.b1024.b32 [{1}], 0, %r2",
        "global_address.{0}.b1024.b64 [{1}], %x1", "rank.{0}.b1024.b32 [{1}], 0",
        "global_dim.{0}.b1024.b32 [{1}], 0, 9", "element_stride.{0}.b1024.b32 [{1}], 0, %r3",
        "interleave_layout.{0}.b1024.b32 [{1}], 0", "swizzle_mode.{0}.b1024.b32 [{1}], 0",
        "swizzle_atomicity.{0}.b1024.b32 [{1}], 0", "fill_mode.{0}.b1024.b32 [{1}], 0"})
    steps += "@%first tensormap.replace.tile." + fmt::format(fmt::runtime(field), space, map) + ";\n";
  return steps;
}

TEST_F(TensorMaps, AMapIsBuiltFromZeros) {
  constexpr std::string_view kZeros =
      "mad.lo.u32 %r1, %t, 4, %base;\nst.shared.u32 [%r1], 0;\nbar.warp.sync 0xffffffff;\n";
  const std::string build = built("shared::cta", "%base");
  const std::vector<std::uint32_t> loaded =
      run(join({kZeros, build, "bar.warp.sync 0xffffffff;\n", kPublish, kAcquire, kLoad, wait_for("A", 0, "0")}));
  for (std::uint32_t i = 0; i < 16; ++i) EXPECT_EQ(loaded[i], i < 9 ? 100 + i : 0);

  // The first 128 bytes of %out are zeros.
  const std::string global = built("global", "%out");
  EXPECT_EQ(run(join({global, kAcquire, kLoad, wait_for("A", 0, "0")})), loaded);
  EXPECT_EQ(finding(join({global, kLoad, wait_for("A", 0, "0")})).kind, FindingKind::missing_tensor_map_fence);

  const Finding incomplete = finding(join({kZeros, kReplace, kPublish}));
  EXPECT_EQ(incomplete.kind, FindingKind::bad_descriptor) << to_string(incomplete);
  EXPECT_NE(incomplete.detail.find("element stride from 1 to 8, got 0"), std::string::npos) << incomplete.detail;
}

TEST_F(TensorMaps, ValuesOfFieldsAreChecked) {
  for (const std::string_view field :
       {"rank.shared::cta.b1024.b32 [%base], 5", "box_dim.shared::cta.b1024.b32 [%base], 0, 257",
        "box_dim.shared::cta.b1024.b32 [%base], 1, 8", "element_stride.shared::cta.b1024.b32 [%base], 0, 9"}) {
    const Finding found = finding("tensormap.replace.tile." + std::string(field) + ";");
    EXPECT_EQ(found.kind, FindingKind::bad_descriptor) << to_string(found);
  }
}

TEST_F(TensorMaps, OtherFieldsAndFormsAreRefused) {
  for (const auto& [instruction, told] : {
           std::pair{"tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%base], 13;", "of the value 13"},
           {"tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%base], 4;", "swizzle_mode of the value 4"},
           {"tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%base], 5, 2;", "mode above 4"},
           {"tensormap.replace.tile.global_dim.shared::cta.b1024.b64 [%base], 0, %x1;", ".b1024.b32"},
           {"tensormap.replace.tile.global_stride.shared::cta.b1024.b32 [%base], 0, %t;", ".b1024.b64"},
           {"tensormap.replace.tile.global_address.b1024.b64 [%out], %x1;", ".shared::cta"},
           {"tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%out], [%base], "
            "64;",
            "64 bytes"},
           {"fence.proxy.tensormap::generic.acquire.gpu [%out], 64;", "64 bytes"},
       }) {
    const Finding found = finding(instruction);
    EXPECT_EQ(found.kind, FindingKind::unsupported_instruction) << instruction;
    EXPECT_NE(found.detail.find(told), std::string::npos) << found.detail;
  }
}

}  // namespace
}  // namespace tilewright::emulator
