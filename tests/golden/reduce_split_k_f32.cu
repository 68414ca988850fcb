#include "tilewright/reduction/reduce_split_k.cuh"
#include "tilewright/numeric/functions.cuh"

struct Plan {
  using ElementParts = float;
  using Accumulator = float;
  static constexpr bool kPartsAreRowMajor = true;
  using ElementC = tilewright::half_t;
  using ElementD = tilewright::half_t;
  using LayoutC = tilewright::RowMajor;
  using LayoutD = tilewright::RowMajor;
  using MatrixC = tilewright::StridedMatrix;
  using MatrixD = tilewright::StridedMatrix;
  static constexpr int kAlignmentC = 8;
  static constexpr int kAlignmentD = 8;
  static constexpr bool kCIsPointerArray = false, kDIsPointerArray = false;
  static constexpr int kTileM = 4, kTileN = 128;
  static constexpr int kThreadsM = 4, kThreadsN = 32;  // thread -> (row, column): (32,4):(4@1,1@0)
  static __device__ constexpr int row(int thread) { return thread / 32; }
  static __device__ constexpr int column(int thread) { return thread % 32 * 4; }
  static constexpr int kVector = 4, kPartVector = 4, kPartsAtOnce = 4;
  static constexpr int kSharedBytes = 0, kSplitK = 1, kReductionCounters = 32768;
};

// linear_combination f32 add(mul($alpha,acc),mul($beta,c))
struct Epilogue {
  using Compute = float;
  static constexpr int kColumnsPerElement = 1;
  struct Parameters {
    Compute alpha_;
    Compute beta_;
  };
  static constexpr bool kReadsSource = false;
  static constexpr bool kHasTensors = false;
  static __device__ __forceinline__ bool reads_source([[maybe_unused]] const Parameters& parameters) {
    return kReadsSource;
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
      const Compute x6 = tilewright::numeric::fma(x0, x1, 0x0p+0f);
      values[i] = x6;
    }
  }
};

using Parameters = tilewright::ReduceSplitKParameters<Epilogue::Parameters>;
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, parts) == 0);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, c) == 8);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, d) == 16);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, ld_parts) == 24);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, part_stride) == 32);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, ldc) == 40);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, ldd) == 48);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_stride_c) == 56);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_stride_d) == 64);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, m) == 72);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, n) == 76);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, count) == 80);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles_n) == 84);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch) == 88);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, workspace) == 96);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, reduction_parts) == 104);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, epilogue.alpha_) == 112);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, epilogue.beta_) == 116);
static_assert(sizeof(Parameters) == 120);

extern "C" __global__ void __launch_bounds__(128)
reduce_split_k_f32(const __grid_constant__ Parameters parameters) {
  tilewright::ReduceSplitK<Plan, Epilogue>(parameters).run();
}
