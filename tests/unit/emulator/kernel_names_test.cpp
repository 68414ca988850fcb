// How a kernel of a module is named, and what is known of its parameters from its mangled name.
#include <gtest/gtest.h>

#include <string>

#include "tilewright/base/error.hpp"
#include "tilewright/emulator/emulated_module.hpp"

namespace tilewright::emulator {
namespace {

/// Kernels of namespace a: anon(float*) in an unnamed namespace, t<float, 3>(float*), u<unsigned, 4u>(int), ov(float*),
/// ov(int*); and st(S, bool, __half, float*).
constexpr const char* kKernels = R"(.version 9.0
.target sm_80
.address_size 64
.visible .entry _ZN1a41_GLOBAL__N__00000000_9_kernel_cu_28be2dc04anonEPf(.param .u64 p0) { ret; }
.visible .entry _ZN1a1tIfLi3EEEvPT_(.param .u64 p0) { ret; }
.visible .entry _ZN1a1uIjLj4EEEvi(.param .u32 p0) { ret; }
.visible .entry _ZN1a2ovEPf(.param .u64 p0) { ret; }
.visible .entry _ZN1a2ovEPi(.param .u64 p0) { ret; }
.visible .entry _Z2st1Sb6__halfPf(.param .align 4 .b8 p0[8], .param .u8 p1, .param .align 2 .b8 p2[2], .param .u64 p3) { ret; }
.visible .entry plain(.param .align 2 .b8 p0[2]) { ret; }
)";

class KernelNames : public testing::Test {
 protected:
  std::string signature(const std::string& name) const { return module_.kernel(name).signature; }
  std::string refusal(const std::string& name) const {
    try {
      return signature(name);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
  }
  EmulatedModule module_{kKernels, kSm80};
};

TEST_F(KernelNames, AreThoseOfTheSource) {
  EXPECT_EQ(module_.kernels()[0].name, "a::(anonymous namespace)::anon");
  EXPECT_EQ(module_.kernels()[1].name, "a::t<float, 3>");
  EXPECT_EQ(module_.kernels()[3].signature, "a::ov(float*)");
  EXPECT_EQ(module_.kernels()[6].name, "plain");
}

TEST_F(KernelNames, NeedNoBlanksAndNoNamespaces) {
  for (const char* const name : {"a::(anonymous namespace)::anon", "a::anon", "anon", "(anonymous namespace)::anon"})
    EXPECT_EQ(signature(name), "a::(anonymous namespace)::anon(float*)") << name;
  for (const char* const name : {"a::t<float, 3>", "a::t<float,3>", "t<float,3>", " t < float , 3 >", "t", "a::t"})
    EXPECT_EQ(signature(name), "a::t<float, 3>(float*)") << name;
  EXPECT_EQ(signature("u<unsigned int, 4>"), "a::u<unsigned int, 4u>(int)");
  EXPECT_EQ(signature("u<unsigned int,4u>(int)"), "a::u<unsigned int, 4u>(int)");
  EXPECT_EQ(signature("_ZN1a2ovEPi"), "a::ov(int*)");
}

TEST_F(KernelNames, SelectAnOverloadByItsParameters) {
  EXPECT_EQ(signature("ov(int*)"), "a::ov(int*)");
  EXPECT_EQ(signature("a::ov( float * )"), "a::ov(float*)");
  EXPECT_NE(refusal("ov").find("several kernels of the name ov"), std::string::npos) << refusal("ov");
  EXPECT_NE(refusal("ov").find("a::ov(float*) (_ZN1a2ovEPf), a::ov(int*)"), std::string::npos) << refusal("ov");
  EXPECT_NE(refusal("v").find("no kernels of the name v"), std::string::npos) << refusal("v");
  EXPECT_NE(refusal("").find("kernels: choose one of them by name: a::"), std::string::npos) << refusal("");
  EXPECT_NE(refusal("t<float,4>").find("no kernels"), std::string::npos) << refusal("t<float,4>");
}

TEST_F(KernelNames, TellWhatPointersPointTo) {
  EXPECT_EQ(module_.kernel("ov(int*)").parameters[0].element, PtxType::s32);
  EXPECT_EQ(module_.kernel("t").parameters[0].element, PtxType::f32);
  const std::vector<KernelParameter>& parameters = module_.kernel("st").parameters;
  EXPECT_EQ(parameters[0].element, std::nullopt);
  EXPECT_EQ(parameters[3].element, PtxType::f32);
  EXPECT_TRUE(is_other_element(parameters[3], PtxType::f64));
  EXPECT_TRUE(is_other_element(parameters[3], PtxType::s32));
  EXPECT_FALSE(is_other_element(parameters[3], PtxType::u8));
}

TEST_F(KernelNames, TellTheTypesOfSmallFloats) {
  const std::vector<KernelParameter>& parameters = module_.kernel("st").parameters;
  EXPECT_EQ(to_string(parameters[0]), "a struct of 8 bytes");
  EXPECT_EQ(to_string(parameters[2]), "an f16");
  EXPECT_EQ(real_argument(parameters[2], 2, 1.5), (std::vector<std::byte>{std::byte{0x00}, std::byte{0x3e}}));
  EXPECT_EQ(integer_argument(parameters[2], 2, true, 1), (std::vector<std::byte>{std::byte{0x00}, std::byte{0xbc}}));
  EXPECT_THROW(real_argument(parameters[2], 2, 65536), InvalidArgument);
  EXPECT_EQ(to_string(module_.kernel("plain").parameters[0]), "a struct of 2 bytes");
}

}  // namespace
}  // namespace tilewright::emulator
