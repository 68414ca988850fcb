#include "tilewright/gemm/simt_gemm.cuh"
#include "tilewright/numeric/functions.cuh"

struct Plan {
  struct OperandA {
    using Element = tilewright::int8_t;
    using Stored = tilewright::int32_t;
    static constexpr bool kIsKMajor = true, kIsAsync = false;
    static constexpr int kTileMn = 128, kTileK = 8;
    static constexpr int kLineElements = 132, kVector = 8;
  };
  struct OperandB {
    using Element = tilewright::int8_t;
    using Stored = tilewright::int32_t;
    static constexpr bool kIsKMajor = false, kIsAsync = false;
    static constexpr int kTileMn = 128, kTileK = 8;
    static constexpr int kLineElements = 128, kVector = 16;
  };
  using Accumulator = tilewright::int32_t;
  static constexpr int kLanesM = 8, kLanesN = 4;
  static constexpr int kVectorM = 4, kVectorN = 4;
  using ElementC = tilewright::int8_t;
  using ElementD = tilewright::int8_t;
  static constexpr int kAlignmentC = 16;
  static constexpr int kAlignmentD = 16;
  static constexpr bool kCIsRowMajor = true;
  static constexpr int kTileM = 128, kTileN = 128, kTileK = 8;
  static constexpr int kWarpsM = 2, kWarpsN = 4;
  static constexpr int kStages = 4;
  static constexpr int kRasterWidth = 1;
};
static_assert(Plan::kStages * (Plan::OperandA::kLineElements + Plan::OperandB::kLineElements) * Plan::kTileK *
                  int(sizeof(Plan::Accumulator)) == 33280);

// linear_combination_clamp f32 min(max(add(mul($alpha,acc),mul($beta,c)),-0x1p+7),0x1.fcp+6)
struct Epilogue {
  using Compute = float;
  struct Scalars {
    Compute alpha;
    Compute beta;
  };
  static constexpr bool kReadsSource = true;
  static __device__ __forceinline__ bool reads_source([[maybe_unused]] const Scalars& scalars) {
    return scalars.beta != Compute(0);
  }
  static __device__ __forceinline__ Compute apply([[maybe_unused]] Compute accumulator,
                                                 [[maybe_unused]] Compute source,
                                                 [[maybe_unused]] const Scalars& scalars) {
    const Compute x0 = scalars.alpha;
    const Compute x1 = accumulator;
    const Compute x2 = tilewright::numeric::mul(x0, x1);
    const Compute x3 = scalars.beta;
    const Compute x4 = source;
    const Compute x5 = tilewright::numeric::mul(x3, x4);
    const Compute x6 = tilewright::numeric::add(x2, x5);
    const Compute x7 = -0x1p+7f;
    const Compute x8 = 0x1.fcp+6f;
    const Compute x9 = tilewright::numeric::max(x6, x7);
    const Compute x10 = tilewright::numeric::min(x9, x8);
    return x10;
  }
};

extern "C" __global__ void __launch_bounds__(256)
simt_gemm_s8r16_s8r16_s8r16_s32_128x128x8_s4_w2x4x1_8463ece4(const __grid_constant__ tilewright::GemmParameters<Epilogue::Scalars> parameters) {
  tilewright::SimtGemm<Plan, Epilogue>(parameters).run();
}
