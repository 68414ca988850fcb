#include "tilewright/gemm/skinny_gemm.cuh"
#include "tilewright/numeric/functions.cuh"

struct Plan {
  struct Lines {
    using Element = float;
    static constexpr bool kIsKMajor = true, kIsPointerArray = false;
    static constexpr int kVector = 4;
  };
  struct Few {
    using Element = float;
    static constexpr bool kIsKMajor = true, kIsPointerArray = false;
    static constexpr int kVector = 4;
  };
  using Accumulator = float;
  static constexpr bool kRowsAreFew = true;
  static constexpr int kFew = 2, kThreadLines = 4, kTileLines = 16, kLaneGroups = 1;
  static constexpr int kWarpsLines = 4, kWarpsK = 2, kClusterK = 1;
  static constexpr int kChunk = 4, kAhead = 2, kSharedBytes = 256;
  static constexpr int kTileM = 2, kTileN = 16, kSplitK = 1, kReductionCounters = 32768;
  using ElementC = float;
  using ElementD = float;
  using LayoutC = tilewright::RowMajor;
  using LayoutD = tilewright::RowMajor;
  using MatrixC = tilewright::StridedMatrix;
  using MatrixD = tilewright::StridedMatrix;
  static constexpr int kAlignmentC = 4;
  static constexpr int kAlignmentD = 4;
  static constexpr bool kCIsPointerArray = false, kDIsPointerArray = false;
};

// linear_combination f32 add(mul($alpha,acc),mul($beta,c))
struct Epilogue {
  using Compute = float;
  static constexpr int kColumnsPerElement = 1;
  struct Parameters {
    Compute alpha_;
    Compute beta_;
  };
  static constexpr bool kReadsSource = true;
  static constexpr bool kHasTensors = false;
  static __device__ __forceinline__ bool reads_source([[maybe_unused]] const Parameters& parameters) {
    return parameters.beta_ != Compute(0);
  }
  template <class Visitor>
  static __device__ __forceinline__ void for_each_vector([[maybe_unused]] const Parameters& parameters,
                                                         [[maybe_unused]] const Visitor& visitor) {
  }
  static constexpr int kRowVectors = 0, kColumnVectors = 0;
  template <class Visitor>
  static __device__ __forceinline__ void for_each_reduction([[maybe_unused]] const Parameters& parameters,
                                                            [[maybe_unused]] const Visitor& visitor) {
  }
  static constexpr int kReductions = 0, kColumnResults = 0, kRowResults = 0, kSingleResults = 0;
  template <int kCount, class Place>
  static __device__ __forceinline__ void apply(Compute (&values)[kCount],
                                               [[maybe_unused]] const Compute (&source)[kCount],
                                               [[maybe_unused]] const Parameters& parameters,
                                               [[maybe_unused]] const Place& place) {
    #pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const Compute x0 = parameters.alpha_;
      const Compute x1 = values[i];
      const Compute x3 = parameters.beta_;
      const Compute x4 = source[i];
      const Compute x5 = tilewright::numeric::mul(x3, x4);
      const Compute x6 = tilewright::numeric::fma(x0, x1, x5);
      values[i] = x6;
    }
  }
};

using Parameters = tilewright::GemmParameters<Epilogue::Parameters>;
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, a) == 0);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, b) == 8);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, c) == 16);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, d) == 24);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, lda) == 32);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, ldb) == 40);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, ldc) == 48);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, ldd) == 56);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_stride_a) == 64);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_stride_b) == 72);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_stride_c) == 80);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_stride_d) == 88);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, m) == 96);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, n) == 100);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, k) == 104);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.tiles_m) == 108);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.tiles_n) == 112);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.groups) == 116);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.matrix.multiplier) == 120);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.matrix.shift) == 124);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.group.multiplier) == 128);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.group.shift) == 132);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.narrow.multiplier) == 136);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.narrow.shift) == 140);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch) == 144);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, workspace) == 152);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, reduction_parts) == 160);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, epilogue.alpha_) == 168);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, epilogue.beta_) == 172);
static_assert(sizeof(Parameters) == 176);

extern "C" __global__ void __launch_bounds__(256)
skinny_gemm_f32(const __grid_constant__ Parameters parameters) {
  tilewright::SkinnyGemm<Plan, Epilogue>(parameters).run();
}
