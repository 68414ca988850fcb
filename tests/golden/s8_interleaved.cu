#include "tilewright/gemm/sm80_gemm.cuh"
#include "tilewright/numeric/functions.cuh"
#include "tilewright/ptx/mma_s8.cuh"

struct Plan {
  struct OperandA {  // shared-memory layout: Sw<2,4,3> o 0 o (64,(64,1)):(64,(1,4096))
    using Element = tilewright::int8_t;
    using Matrix = tilewright::StridedMatrix;
    static constexpr bool kIsKMajor = true, kIsInterleaved = true, kUsesLdmatrix = true;
    static constexpr bool kIsPointerArray = false;
    static constexpr int kContiguous = 64, kAlignmentBytes = 16;
    static constexpr int kTileBytes = 4096, kSwizzledBits = 0x30;
    struct Copy {  // (thread, pass) -> (line, element): ((4,32),2):((16@1,1@0),32@0)
      static constexpr int kPasses = 2, kActiveThreads = 128, kLineStep = 32;
      static __device__ constexpr int line(int thread) { return thread / 4; }
      static __device__ constexpr int element(int thread) { return thread % 4 * 16; }
      static __device__ constexpr int pass_line(int pass) { return pass * 32; }
      static __device__ constexpr int pass_element([[maybe_unused]] int pass) { return 0; }
      // Sw<2,4,3> o 0 o ((4,32),2):((16,64),2048)
      static __device__ constexpr tilewright::uint32_t place(int thread) { return thread * 16 ^ thread / 8 % 4 * 16; }
      static __device__ constexpr tilewright::uint32_t pass_place(int pass) { return pass * 2048; }
    };
    struct Fragments {  // ((lane, warp), load, step): Sw<2,4,3> o 0 o (((16,2),(2,2)),2,2):(((64,16),(2048,0)),1024,32)
      static constexpr int kLoads = 2, kStepK = 32;
      static __device__ constexpr tilewright::uint32_t place(int thread) {
        [[maybe_unused]] const int lane = thread % 32, warp = thread / 32;
        return lane % 16 * 64 + warp % 2 * 2048 + (lane / 16 * 16 ^ lane / 2 % 4 * 16);
      }
      static __device__ constexpr tilewright::uint32_t step_place(int load, int step) { return load * 1024 + step * 32; }
    };
  };
  struct OperandB {  // shared-memory layout: Sw<2,4,3> o 0 o (64,(64,1)):(64,(1,4096))
    using Element = tilewright::int8_t;
    using Matrix = tilewright::StridedMatrix;
    static constexpr bool kIsKMajor = true, kIsInterleaved = true, kUsesLdmatrix = true;
    static constexpr bool kIsPointerArray = false;
    static constexpr int kContiguous = 64, kAlignmentBytes = 16;
    static constexpr int kTileBytes = 4096, kSwizzledBits = 0x30;
    struct Copy {  // (thread, pass) -> (line, element): ((4,32),2):((16@1,1@0),32@0)
      static constexpr int kPasses = 2, kActiveThreads = 128, kLineStep = 32;
      static __device__ constexpr int line(int thread) { return thread / 4; }
      static __device__ constexpr int element(int thread) { return thread % 4 * 16; }
      static __device__ constexpr int pass_line(int pass) { return pass * 32; }
      static __device__ constexpr int pass_element([[maybe_unused]] int pass) { return 0; }
      // Sw<2,4,3> o 0 o ((4,32),2):((16,64),2048)
      static __device__ constexpr tilewright::uint32_t place(int thread) { return thread * 16 ^ thread / 8 % 4 * 16; }
      static __device__ constexpr tilewright::uint32_t pass_place(int pass) { return pass * 2048; }
    };
    struct Fragments {  // ((lane, warp), load, step): Sw<2,4,3> o 0 o (((8,2,2),(2,2)),2,2):(((64,16,512),(0,2048)),1024,32)
      static constexpr int kLoads = 2, kStepK = 32;
      static __device__ constexpr tilewright::uint32_t place(int thread) {
        [[maybe_unused]] const int lane = thread % 32, warp = thread / 32;
        return lane / 16 * 512 + lane % 8 * 64 + warp / 2 * 2048 + (lane / 8 % 2 * 16 ^ lane / 2 % 4 * 16);
      }
      static __device__ constexpr tilewright::uint32_t step_place(int load, int step) { return load * 1024 + step * 32; }
    };
  };
  using Math = tilewright::DirectMath<tilewright::ptx::Mma<16, 8, 32, tilewright::int8_t, tilewright::int8_t, tilewright::int32_t>>;
  static constexpr bool kPromotesAccumulators = false;
  static constexpr bool kAccumulatesInHalf = false;
  struct AccumulatorTile {  // (thread, value) -> coordinate: (((4,8),(2,2)),(2,2)):(((2@1,1@0),(16@0,32@1)),(1@1,8@0))
    static constexpr int kLaneRows = 1, kOtherRow = 8;
    static __device__ constexpr int row(int thread) {
      [[maybe_unused]] const int lane = thread % 32, warp = thread / 32;
      return lane / 4 + warp % 2 * 16;
    }
    static __device__ constexpr int column(int thread) {
      [[maybe_unused]] const int lane = thread % 32, warp = thread / 32;
      return lane % 4 * 2 + warp / 2 * 32;
    }
  };
  static constexpr int kBandLine = 72;
  static constexpr bool kRealignsRows = false;
  static constexpr int kStageBytes = 8192, kBandBytes = 9216, kSharedBytes = 49152;
  using ElementC = tilewright::int8_t;
  using ElementD = tilewright::int8_t;
  using LayoutC = tilewright::ColumnInterleaved;
  using LayoutD = tilewright::ColumnInterleaved;
  using MatrixC = tilewright::StridedMatrix;
  using MatrixD = tilewright::StridedMatrix;
  static constexpr int kAlignmentC = 16;
  static constexpr int kAlignmentD = 16;
  static constexpr bool kCIsPointerArray = false, kDIsPointerArray = false;
  static constexpr int kTileM = 64, kTileN = 64, kTileK = 64;
  static constexpr int kWarpsM = 2, kWarpsN = 2;
  static constexpr int kStages = 6;
  using Scheduler = tilewright::GridTiles<Plan>;
  using Groups = tilewright::NoGroups;
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

extern "C" __global__ void __launch_bounds__(128)
s8_interleaved(const __grid_constant__ Parameters parameters) {
  tilewright::Sm80Gemm<Plan, Epilogue>(parameters).run();
}
