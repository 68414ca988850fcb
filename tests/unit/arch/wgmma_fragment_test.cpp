// Loads of A fragments from MN-major tiles: every element reaches its register, without bank conflicts.
#include "tilewright/arch/wgmma_fragment.hpp"

#include <gtest/gtest.h>

#include "tilewright/arch/wgmma_smem.hpp"
#include "tilewright/layout/algebra.hpp"
#include "tilewright/layout/print.hpp"

namespace tilewright::arch {
namespace {

const WgmmaAtom& tf32_atom() {
  return *find_wgmma_atom(DType::tf32, DType::tf32, DType::f32, OperandSource::registers);
}

const WgmmaAtom& s8_atom() { return *find_wgmma_atom(DType::s8, DType::s8, DType::s32, OperandSource::registers); }

layout::ComposedLayout mn_major(SwizzleMode mode, int element_bits, int mn, int k) {
  return smem_tile({.major = Major::mn, .mode = mode, .element_bits = element_bits, .mn = mn, .k = k}).value_or_throw();
}

TEST(WgmmaFragment, LoadsOfTf32) {
  const FragmentLoads loads =
      fragment_loads(tf32_atom(), mn_major(SwizzleMode::bytes_128, 32, 128, 32)).value_or_throw();
  EXPECT_EQ(to_string(loads.offset), "Sw<3,2,3> o 0 o ((4,8,(2,2)),(2,2),2):((32,1,(16,1024)),(8,128),2048)");
  EXPECT_EQ(to_string(loads.step), "4:256");
}

TEST(WgmmaFragment, LoadsOfBytes) {
  const FragmentLoads loads = fragment_loads(s8_atom(), mn_major(SwizzleMode::bytes_128, 8, 128, 128)).value_or_throw();
  EXPECT_EQ(to_string(loads.offset), "Sw<3,4,3> o 0 o ((2,4,4,4),(2,2),2):((128,512,0,16),(256,2048),64)");
  EXPECT_EQ(to_string(loads.step), "4:4096");
  EXPECT_TRUE(loads.pairs_rows);
}

TEST(WgmmaFragment, EveryWordIsLoadedToItsRegister) {
  for (const SwizzleMode mode : {SwizzleMode::bytes_32, SwizzleMode::bytes_64, SwizzleMode::bytes_128}) {
    const layout::ComposedLayout smem = mn_major(mode, 32, 192, 32);
    const FragmentLoads loads = fragment_loads(tf32_atom(), smem).value_or_throw();
    const MmaAtom instruction = arch::instruction(tf32_atom(), 8).value_or_throw();
    for (int thread = 0; thread < 128; ++thread) {
      for (int value = 0; value < 4; ++value) {
        const auto place = static_cast<int>(instruction.a_tv(thread, value));
        for (int mn = 0; mn < 3; ++mn) {
          for (int k = 0; k < 4; ++k) {
            ASSERT_EQ(loads.offset(thread, value, mn) + loads.step(k), smem(mn * 64 + place % 64, k * 8 + place / 64));
          }
        }
      }
    }
  }
}

// ldmatrix.x4.trans gives lane 4g + t the pairs of bytes at 2g of rows 2t and 2t + 1.
TEST(WgmmaFragment, EveryByteIsLoadedByItsThread) {
  for (const SwizzleMode mode : {SwizzleMode::bytes_64, SwizzleMode::bytes_128}) {
    const layout::ComposedLayout smem = mn_major(mode, 8, 128, 128);
    const FragmentLoads loads = fragment_loads(s8_atom(), smem).value_or_throw();
    for (int thread = 0; thread < 128; ++thread) {
      for (int matrix = 0; matrix < 4; ++matrix) {
        const int t = thread % 8 / 2;
        const int k = matrix / 2 * 16 + t * 4 + matrix % 2 * 2 + thread % 2;
        for (int mn = 0; mn < 2; ++mn) {
          for (int step = 0; step < 4; ++step) {
            ASSERT_EQ(loads.offset(thread, matrix, mn) + loads.step(step),
                      smem(mn * 64 + thread / 32 * 16, step * 32 + k));
          }
        }
      }
    }
  }
}

TEST(WgmmaFragment, NoLoadOfBytesHasABankConflict) {
  for (const SwizzleMode mode : {SwizzleMode::bytes_64, SwizzleMode::bytes_128}) {
    FragmentLoads loads = fragment_loads(s8_atom(), mn_major(mode, 8, 128, 128)).value_or_throw();
    EXPECT_EQ(bank_conflicts(loads, 0), 0) << name(mode);
    EXPECT_EQ(bank_conflicts(loads, 1), 0) << name(mode);
    loads.staggered_threads = 0;  // then each of 4 warps loads 4 matrices with two wavefronts each
    EXPECT_EQ(bank_conflicts(loads, 0), 16) << name(mode);
  }
}

TEST(WgmmaFragment, NoLoadOfWordsHasABankConflict) {
  for (const SwizzleMode mode : {SwizzleMode::bytes_64, SwizzleMode::bytes_128}) {
    FragmentLoads loads = fragment_loads(tf32_atom(), mn_major(mode, 32, 128, 32)).value_or_throw();
    EXPECT_EQ(bank_conflicts(loads, 0), 0) << name(mode);
    EXPECT_EQ(bank_conflicts(loads, 1), 0) << name(mode);
    loads.staggered_threads = 0;  // then each of 4 warps executes 4 loads with two wavefronts each
    EXPECT_EQ(bank_conflicts(loads, 0), 16) << name(mode);
  }
}

TEST(WgmmaFragment, Refusals) {
  const auto reason = [](const WgmmaAtom& atom, const layout::ComposedLayout& smem) {
    return fragment_loads(atom, smem).reason();
  };
  const layout::ComposedLayout words = mn_major(SwizzleMode::bytes_128, 32, 96, 32);
  EXPECT_EQ(reason(tf32_atom(), words),
            "wgmma_k8_f32_tf32_tf32_rs: an instruction takes 64, which do not divide the tile's 96");
  const WgmmaAtom& from_memory = *find_wgmma_atom(DType::tf32, DType::tf32, DType::f32, OperandSource::shared_memory);
  EXPECT_EQ(reason(from_memory, words), "wgmma_k8_f32_tf32_tf32_ss reads A from shared memory");
  const WgmmaAtom& half = *find_wgmma_atom(DType::f16, DType::f16, DType::f32, OperandSource::registers);
  EXPECT_EQ(reason(half, mn_major(SwizzleMode::bytes_128, 16, 128, 64)),
            "wgmma_k16_f32_f16_f16_rs: fragments must have elements of 8 or 32 bits, f16 has 16");
}

}  // namespace
}  // namespace tilewright::arch
