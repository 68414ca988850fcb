#include "tilewright/gemm/sm80_gemm.cuh"
#include "tilewright/numeric/functions.cuh"
#include "tilewright/ptx/mma_f16.cuh"

struct Plan {
  struct OperandA {  // shared-memory layout: Sw<2,4,3> o 0 o (128,(32,1)):(64,(2,8192))
    using Element = tilewright::half_t;
    using Matrix = tilewright::StridedMatrix;
    static constexpr bool kIsKMajor = true, kIsInterleaved = false, kUsesLdmatrix = true;
    static constexpr bool kIsPointerArray = false;
    static constexpr int kContiguous = 32, kAlignmentBytes = 16;
    static constexpr int kTileBytes = 8192, kSwizzledBits = 0x30;
    struct Copy {  // (thread, pass) -> (line, element): ((4,32),4):((8@1,1@0),32@0)
      static constexpr int kPasses = 4, kActiveThreads = 128, kLineStep = 32;
      static __device__ constexpr int line(int thread) { return thread / 4; }
      static __device__ constexpr int element(int thread) { return thread % 4 * 8; }
      static __device__ constexpr int pass_line(int pass) { return pass * 32; }
      static __device__ constexpr int pass_element([[maybe_unused]] int pass) { return 0; }
      // Sw<2,4,3> o 0 o ((4,32),4):((16,64),2048)
      static __device__ constexpr tilewright::uint32_t place(int thread) { return thread * 16 ^ thread / 8 % 4 * 16; }
      static __device__ constexpr tilewright::uint32_t pass_place(int pass) { return pass * 2048; }
    };
    struct Fragments {  // ((lane, warp), load, step): Sw<2,4,3> o 0 o (((16,2),(2,2)),4,2):(((64,16),(4096,0)),1024,32)
      static constexpr int kLoads = 4, kStepK = 16;
      static __device__ constexpr tilewright::uint32_t place(int thread) {
        [[maybe_unused]] const int lane = thread % 32, warp = thread / 32;
        return lane % 16 * 64 + warp % 2 * 4096 + (lane / 16 * 16 ^ lane / 2 % 4 * 16);
      }
      static __device__ constexpr tilewright::uint32_t step_place(int load, int step) { return load * 1024 + step * 32; }
    };
  };
  struct OperandB {  // shared-memory layout: Sw<2,4,3> o 0 o (128,(32,1)):(64,(2,8192))
    using Element = tilewright::half_t;
    using Matrix = tilewright::StridedMatrix;
    static constexpr bool kIsKMajor = true, kIsInterleaved = false, kUsesLdmatrix = true;
    static constexpr bool kIsPointerArray = false;
    static constexpr int kContiguous = 32, kAlignmentBytes = 16;
    static constexpr int kTileBytes = 8192, kSwizzledBits = 0x30;
    struct Copy {  // (thread, pass) -> (line, element): ((4,32),4):((8@1,1@0),32@0)
      static constexpr int kPasses = 4, kActiveThreads = 128, kLineStep = 32;
      static __device__ constexpr int line(int thread) { return thread / 4; }
      static __device__ constexpr int element(int thread) { return thread % 4 * 8; }
      static __device__ constexpr int pass_line(int pass) { return pass * 32; }
      static __device__ constexpr int pass_element([[maybe_unused]] int pass) { return 0; }
      // Sw<2,4,3> o 0 o ((4,32),4):((16,64),2048)
      static __device__ constexpr tilewright::uint32_t place(int thread) { return thread * 16 ^ thread / 8 % 4 * 16; }
      static __device__ constexpr tilewright::uint32_t pass_place(int pass) { return pass * 2048; }
    };
    struct Fragments {  // ((lane, warp), load, step): Sw<2,4,3> o 0 o (((8,2,2),(2,2)),4,2):(((64,16,512),(0,4096)),1024,32)
      static constexpr int kLoads = 4, kStepK = 16;
      static __device__ constexpr tilewright::uint32_t place(int thread) {
        [[maybe_unused]] const int lane = thread % 32, warp = thread / 32;
        return lane / 16 * 512 + lane % 8 * 64 + warp / 2 * 4096 + (lane / 8 % 2 * 16 ^ lane / 2 % 4 * 16);
      }
      static __device__ constexpr tilewright::uint32_t step_place(int load, int step) { return load * 1024 + step * 32; }
    };
  };
  using Math = tilewright::DirectMath<tilewright::ptx::Mma<16, 8, 16, tilewright::half_t, tilewright::half_t, float>>;
  static constexpr bool kPromotesAccumulators = false;
  static constexpr bool kAccumulatesInHalf = false;
  struct AccumulatorTile {  // (thread, value) -> coordinate: (((4,8),(2,2)),(2,2)):(((2@1,1@0),(16@0,64@1)),(1@1,8@0))
    static constexpr int kLaneRows = 1, kOtherRow = 8;
    static __device__ constexpr int row(int thread) {
      [[maybe_unused]] const int lane = thread % 32, warp = thread / 32;
      return lane / 4 + warp % 2 * 16;
    }
    static __device__ constexpr int column(int thread) {
      [[maybe_unused]] const int lane = thread % 32, warp = thread / 32;
      return lane % 4 * 2 + warp / 2 * 64;
    }
  };
  static constexpr int kBandLine = 136;
  static constexpr bool kRealignsRows = false;
  static constexpr int kStageBytes = 16384, kBandBytes = 17408, kSharedBytes = 65536;
  using ElementC = tilewright::half_t;
  using ElementD = tilewright::half_t;
  using LayoutC = tilewright::RowMajor;
  using LayoutD = tilewright::RowMajor;
  using MatrixC = tilewright::StridedMatrix;
  using MatrixD = tilewright::StridedMatrix;
  static constexpr int kAlignmentC = 8;
  static constexpr int kAlignmentD = 8;
  static constexpr bool kCIsPointerArray = false, kDIsPointerArray = false;
  static constexpr int kTileM = 128, kTileN = 128, kTileK = 32;
  static constexpr int kWarpsM = 2, kWarpsN = 2;
  static constexpr int kStages = 4;
  using Scheduler = tilewright::GridGroupTiles<Plan, false, true>;
  using Groups = tilewright::Groups;
  using Raster = tilewright::Raster<1, false>;
  static constexpr int kSplitK = 1, kReductionCounters = 32768;
  static constexpr bool kSplitsInTurn = false;
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

using Parameters = tilewright::GemmParameters<Epilogue::Parameters, Plan::Groups>;
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, groups.ends) == 0);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, a) == 8);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, b) == 16);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, c) == 24);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, d) == 32);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, lda) == 40);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, ldb) == 48);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, ldc) == 56);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, ldd) == 64);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_stride_a) == 72);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_stride_b) == 80);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_stride_c) == 88);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_stride_d) == 96);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, m) == 104);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, n) == 108);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, k) == 112);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.tiles_m) == 116);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.tiles_n) == 120);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.groups) == 124);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.matrix.multiplier) == 128);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.matrix.shift) == 132);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.group.multiplier) == 136);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.group.shift) == 140);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.narrow.multiplier) == 144);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.narrow.shift) == 148);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch) == 152);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, workspace) == 160);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, reduction_parts) == 168);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, epilogue.alpha_) == 176);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, epilogue.beta_) == 180);
static_assert(sizeof(Parameters) == 184);

extern "C" __global__ void __launch_bounds__(128)
grouped_f16_tn(const __grid_constant__ Parameters parameters) {
  tilewright::Sm80Gemm<Plan, Epilogue>(parameters).run();
}
