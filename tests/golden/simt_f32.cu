#include "tilewright/gemm/simt_gemm.cuh"
#include "tilewright/numeric/functions.cuh"

struct Plan {
  struct OperandA {  // (128,8):(1,132)
    using Element = float;
    using Matrix = tilewright::StridedMatrix;
    using Stored = float;
    static constexpr bool kIsKMajor = true, kIsInterleaved = false;
    static constexpr bool kIsAsync = false, kIsStaged = false;
    static constexpr bool kIsPointerArray = false;
    static constexpr int kTileK = 8, kVector = 1;
    static constexpr int kTileElements = 1056, kLineElements = 132, kElementStep = 132;
    struct Copy {  // (thread, pass) -> (line, element): ((8,32),4):((1@1,1@0),32@0)
      static constexpr int kPasses = 4, kActiveThreads = 256, kLineStep = 32;
      static __device__ constexpr int line(int thread) { return thread / 8; }
      static __device__ constexpr int element(int thread) { return thread % 8; }
      static __device__ constexpr int pass_line(int pass) { return pass * 32; }
      static __device__ constexpr int pass_element([[maybe_unused]] int pass) { return 0; }
      // Sw<0,0,0> o 0 o ((8,32),4):((132,1),32)
      static __device__ constexpr tilewright::uint32_t place(int thread) { return thread % 8 * 132 + thread / 8; }
      static __device__ constexpr tilewright::uint32_t pass_place(int pass) { return pass * 32; }
    };
  };
  struct OperandB {  // (8,128):(128,1)
    using Element = float;
    using Matrix = tilewright::StridedMatrix;
    using Stored = float;
    static constexpr bool kIsKMajor = false, kIsInterleaved = false;
    static constexpr bool kIsAsync = true, kIsStaged = false;
    static constexpr bool kIsPointerArray = false;
    static constexpr int kTileK = 8, kVector = 1;
    static constexpr int kTileElements = 1024, kLineElements = 128, kElementStep = 1;
    struct Copy {  // (thread, pass) -> (line, element): ((128,2),4):((1@1,1@0),2@0)
      static constexpr int kPasses = 4, kActiveThreads = 256, kLineStep = 2;
      static __device__ constexpr int line(int thread) { return thread / 128; }
      static __device__ constexpr int element(int thread) { return thread % 128; }
      static __device__ constexpr int pass_line(int pass) { return pass * 2; }
      static __device__ constexpr int pass_element([[maybe_unused]] int pass) { return 0; }
      // Sw<0,0,0> o 0 o ((128,2),4):((1,128),256)
      static __device__ constexpr tilewright::uint32_t place(int thread) { return thread; }
      static __device__ constexpr tilewright::uint32_t pass_place(int pass) { return pass * 256; }
    };
  };
  using Accumulator = float;
  struct ThreadTile {  // (((2,8,2),(2,4)),((4,2),(4,2))):(((4@1,4@0,8@1),(64@0,32@1)),((1@0,32@0),(1@1,16@1)))
    static constexpr int kM = 8, kN = 8;
    static constexpr int kVectorM = 4, kVectorN = 4;
    static __device__ constexpr int row(int thread) {
      [[maybe_unused]] const int lane = thread % 32, warp = thread / 32;
      return lane / 2 % 8 * 4 + warp % 2 * 64;
    }
    static __device__ constexpr int column(int thread) {
      [[maybe_unused]] const int lane = thread % 32, warp = thread / 32;
      return lane / 16 * 8 + lane % 2 * 4 + warp / 2 * 32;
    }
    static __device__ constexpr int row_step(int i) { return i / 4 * 32 + i % 4; }
    static __device__ constexpr int column_step(int j) { return j / 4 * 16 + j % 4; }
    static constexpr int kBandRows = 16;
    static __device__ constexpr int band_row(int thread) {
      [[maybe_unused]] const int lane = thread % 32, warp = thread / 32;
      return lane / 2 % 8 + warp % 2 * 8;
    }
    static __device__ constexpr int row_of_band(int row) { return row / 8 * 64 + row % 8 * 4; }
  };
  static constexpr int kCopyPhases = 2, kCopyLag = 1;
  static constexpr bool kStagesRows = true, kRealignsRows = false;
  static constexpr int kBandLine = 136, kBandBytes = 8704;
  static constexpr int kStageBytes = 8320, kSharedBytes = 33280;
  using ElementC = float;
  using ElementD = float;
  using LayoutC = tilewright::RowMajor;
  using LayoutD = tilewright::RowMajor;
  using MatrixC = tilewright::StridedMatrix;
  using MatrixD = tilewright::StridedMatrix;
  static constexpr int kAlignmentC = 1;
  static constexpr int kAlignmentD = 1;
  static constexpr bool kCIsPointerArray = false, kDIsPointerArray = false;
  static constexpr int kTileM = 128, kTileN = 128, kTileK = 8;
  static constexpr int kWarpsM = 2, kWarpsN = 4;
  static constexpr int kStages = 4;
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

extern "C" __global__ void __launch_bounds__(256, 2)
simt_f32(const __grid_constant__ Parameters parameters) {
  tilewright::SimtGemm<Plan, Epilogue>(parameters).run();
}
