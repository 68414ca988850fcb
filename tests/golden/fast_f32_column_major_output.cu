#include "tilewright/gemm/sm80_gemm.cuh"
#include "tilewright/numeric/functions.cuh"
#include "tilewright/ptx/mma_tf32.cuh"

struct Plan {
  struct OperandA {  // shared-memory layout: Sw<2,4,3> o 0 o (32,(16,1)):(64,(4,2048))
    using Element = float;
    using Matrix = tilewright::StridedMatrix;
    static constexpr bool kIsKMajor = true, kIsInterleaved = false, kUsesLdmatrix = true;
    static constexpr bool kIsPointerArray = false;
    static constexpr int kContiguous = 16, kAlignmentBytes = 16;
    static constexpr int kTileBytes = 2048, kSwizzledBits = 0x30;
    struct Copy {  // (thread, pass) -> (line, element): ((4,16),2):((4@1,1@0),16@0)
      static constexpr int kPasses = 2, kActiveThreads = 64, kLineStep = 16;
      static __device__ constexpr int line(int thread) { return thread / 4; }
      static __device__ constexpr int element(int thread) { return thread % 4 * 4; }
      static __device__ constexpr int pass_line(int pass) { return pass * 16; }
      static __device__ constexpr int pass_element([[maybe_unused]] int pass) { return 0; }
      // Sw<2,4,3> o 0 o ((4,16),2):((16,64),1024)
      static __device__ constexpr tilewright::uint32_t place(int thread) { return thread * 16 ^ thread / 8 % 4 * 16; }
      static __device__ constexpr tilewright::uint32_t pass_place(int pass) { return pass * 1024; }
    };
    struct Fragments {  // ((lane, warp), load, step): Sw<2,4,3> o 0 o (((16,2),(1,2)),2,2):(((64,16),(2048,0)),1024,32)
      static constexpr int kLoads = 2, kStepK = 8;
      static __device__ constexpr tilewright::uint32_t place(int thread) {
        [[maybe_unused]] const int lane = thread % 32, warp = thread / 32;
        return lane % 16 * 64 + (lane / 16 * 16 ^ lane / 2 % 4 * 16);
      }
      static __device__ constexpr tilewright::uint32_t step_place(int load, int step) { return load * 1024 + step * 32; }
    };
  };
  struct OperandB {  // shared-memory layout: Sw<2,4,3> o 0 o (64,(16,1)):(64,(4,4096))
    using Element = float;
    using Matrix = tilewright::StridedMatrix;
    static constexpr bool kIsKMajor = true, kIsInterleaved = false, kUsesLdmatrix = true;
    static constexpr bool kIsPointerArray = false;
    static constexpr int kContiguous = 16, kAlignmentBytes = 16;
    static constexpr int kTileBytes = 4096, kSwizzledBits = 0x30;
    struct Copy {  // (thread, pass) -> (line, element): ((4,16),4):((4@1,1@0),16@0)
      static constexpr int kPasses = 4, kActiveThreads = 64, kLineStep = 16;
      static __device__ constexpr int line(int thread) { return thread / 4; }
      static __device__ constexpr int element(int thread) { return thread % 4 * 4; }
      static __device__ constexpr int pass_line(int pass) { return pass * 16; }
      static __device__ constexpr int pass_element([[maybe_unused]] int pass) { return 0; }
      // Sw<2,4,3> o 0 o ((4,16),4):((16,64),1024)
      static __device__ constexpr tilewright::uint32_t place(int thread) { return thread * 16 ^ thread / 8 % 4 * 16; }
      static __device__ constexpr tilewright::uint32_t pass_place(int pass) { return pass * 1024; }
    };
    struct Fragments {  // ((lane, warp), load, step): Sw<2,4,3> o 0 o (((8,2,2),(1,2)),2,2):(((64,16,512),(0,2048)),1024,32)
      static constexpr int kLoads = 2, kStepK = 8;
      static __device__ constexpr tilewright::uint32_t place(int thread) {
        [[maybe_unused]] const int lane = thread % 32, warp = thread / 32;
        return lane / 16 * 512 + lane % 8 * 64 + warp * 2048 + (lane / 8 % 2 * 16 ^ lane / 2 % 4 * 16);
      }
      static __device__ constexpr tilewright::uint32_t step_place(int load, int step) { return load * 1024 + step * 32; }
    };
  };
  using Math = tilewright::SplitTf32Math<tilewright::ptx::Mma<16, 8, 8, float, float, float>, true>;
  static constexpr bool kPromotesAccumulators = true;
  static constexpr bool kAccumulatesInHalf = false;
  struct AccumulatorTile {  // (thread, value) -> coordinate: (((4,8),(1,2)),(2,2)):(((2@1,1@0),(1@1,32@1)),(1@1,8@0))
    static constexpr int kLaneRows = 1, kOtherRow = 8;
    static __device__ constexpr int row(int thread) {
      [[maybe_unused]] const int lane = thread % 32, warp = thread / 32;
      return lane / 4;
    }
    static __device__ constexpr int column(int thread) {
      [[maybe_unused]] const int lane = thread % 32, warp = thread / 32;
      return lane % 4 * 2 + warp * 32;
    }
  };
  static constexpr int kBandLine = 72;
  static constexpr bool kRealignsRows = false;
  static constexpr int kStageBytes = 6144, kBandBytes = 4608, kSharedBytes = 18432;
  using ElementC = float;
  using ElementD = float;
  using LayoutC = tilewright::ColumnMajor;
  using LayoutD = tilewright::RowMajor;
  using MatrixC = tilewright::StridedMatrix;
  using MatrixD = tilewright::StridedMatrix;
  static constexpr int kAlignmentC = 4;
  static constexpr int kAlignmentD = 4;
  static constexpr bool kCIsPointerArray = false, kDIsPointerArray = false;
  static constexpr int kTileM = 32, kTileN = 64, kTileK = 16;
  static constexpr int kWarpsM = 1, kWarpsN = 2;
  static constexpr int kStages = 3;
  using Scheduler = tilewright::GridTiles<Plan>;
  using Groups = tilewright::NoGroups;
  using Raster = tilewright::Raster<1, true>;
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

extern "C" __global__ void __launch_bounds__(64)
fast_f32_column_major_output(const __grid_constant__ Parameters parameters) {
  tilewright::Sm80Gemm<Plan, Epilogue>(parameters).run();
}
