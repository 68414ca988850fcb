#include "tilewright/gemm/sm80_gemm.cuh"
#include "tilewright/numeric/functions.cuh"
#include "tilewright/ptx/mma_s8.cuh"

struct Plan {
  struct OperandA {  // shared-memory layout: Sw<2,4,3> o 0 o (64,(64,1)):(64,(1,4096))
    using Element = tilewright::int8_t;
    using Matrix = tilewright::Im2colMatrix<false, true>;
    static constexpr bool kIsKMajor = true, kIsInterleaved = false, kUsesLdmatrix = true;
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
  static constexpr int kStageBytes = 8192, kBandBytes = 9216, kSharedBytes = 32768;
  using ElementC = tilewright::int8_t;
  using ElementD = tilewright::int8_t;
  using LayoutC = tilewright::RowMajor;
  using LayoutD = tilewright::RowMajor;
  using MatrixC = tilewright::FoldedMatrix<2>;
  using MatrixD = tilewright::FoldedMatrix<2>;
  static constexpr int kAlignmentC = 16;
  static constexpr int kAlignmentD = 16;
  static constexpr bool kCIsPointerArray = false, kDIsPointerArray = false;
  static constexpr int kTileM = 64, kTileN = 64, kTileK = 64;
  static constexpr int kWarpsM = 2, kWarpsN = 2;
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

using Parameters = tilewright::GemmParameters<Epilogue::Parameters, Plan::Groups, Plan::OperandA::Matrix, Plan::OperandB::Matrix, Plan::MatrixC, Plan::MatrixD>;
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.image_stride) == 0);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.block_stride) == 8);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.h.stride) == 16);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.h.positions) == 24);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.h.taps) == 28);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.h.extent) == 32);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.h.step) == 36);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.h.tap_step) == 40);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.h.offset) == 44);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.h.divisor) == 48);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.h.by_positions.multiplier) == 52);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.h.by_positions.shift) == 56);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.h.by_taps.multiplier) == 60);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.h.by_taps.shift) == 64);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.h.by_divisor.multiplier) == 68);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.h.by_divisor.shift) == 72);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.w.stride) == 80);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.w.positions) == 88);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.w.taps) == 92);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.w.extent) == 96);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.w.step) == 100);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.w.tap_step) == 104);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.w.offset) == 108);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.w.divisor) == 112);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.w.by_positions.multiplier) == 116);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.w.by_positions.shift) == 120);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.w.by_taps.multiplier) == 124);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.w.by_taps.shift) == 128);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.w.by_divisor.multiplier) == 132);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.w.by_divisor.shift) == 136);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.channels) == 144);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.by_channels.multiplier) == 148);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_a.matrix.by_channels.shift) == 152);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_c.matrix.lines.coordinate[0].stride) == 160);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_c.matrix.lines.coordinate[0].extent) == 168);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_c.matrix.lines.coordinate[0].by_extent.multiplier) == 172);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_c.matrix.lines.coordinate[0].by_extent.shift) == 176);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_c.matrix.lines.coordinate[1].stride) == 184);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_c.matrix.lines.coordinate[1].extent) == 192);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_c.matrix.lines.coordinate[1].by_extent.multiplier) == 196);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_c.matrix.lines.coordinate[1].by_extent.shift) == 200);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_c.matrix.along_line.coordinate[0].stride) == 208);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_c.matrix.along_line.coordinate[0].extent) == 216);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_c.matrix.along_line.coordinate[0].by_extent.multiplier) == 220);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_c.matrix.along_line.coordinate[0].by_extent.shift) == 224);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_c.matrix.along_line.coordinate[1].stride) == 232);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_c.matrix.along_line.coordinate[1].extent) == 240);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_c.matrix.along_line.coordinate[1].by_extent.multiplier) == 244);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_c.matrix.along_line.coordinate[1].by_extent.shift) == 248);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_c.matrix.batch.coordinate[0].stride) == 256);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_c.matrix.batch.coordinate[0].extent) == 264);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_c.matrix.batch.coordinate[0].by_extent.multiplier) == 268);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_c.matrix.batch.coordinate[0].by_extent.shift) == 272);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_c.matrix.batch.coordinate[1].stride) == 280);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_c.matrix.batch.coordinate[1].extent) == 288);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_c.matrix.batch.coordinate[1].by_extent.multiplier) == 292);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_c.matrix.batch.coordinate[1].by_extent.shift) == 296);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_d.matrix.lines.coordinate[0].stride) == 304);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_d.matrix.lines.coordinate[0].extent) == 312);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_d.matrix.lines.coordinate[0].by_extent.multiplier) == 316);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_d.matrix.lines.coordinate[0].by_extent.shift) == 320);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_d.matrix.lines.coordinate[1].stride) == 328);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_d.matrix.lines.coordinate[1].extent) == 336);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_d.matrix.lines.coordinate[1].by_extent.multiplier) == 340);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_d.matrix.lines.coordinate[1].by_extent.shift) == 344);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_d.matrix.along_line.coordinate[0].stride) == 352);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_d.matrix.along_line.coordinate[0].extent) == 360);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_d.matrix.along_line.coordinate[0].by_extent.multiplier) == 364);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_d.matrix.along_line.coordinate[0].by_extent.shift) == 368);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_d.matrix.along_line.coordinate[1].stride) == 376);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_d.matrix.along_line.coordinate[1].extent) == 384);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_d.matrix.along_line.coordinate[1].by_extent.multiplier) == 388);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_d.matrix.along_line.coordinate[1].by_extent.shift) == 392);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_d.matrix.batch.coordinate[0].stride) == 400);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_d.matrix.batch.coordinate[0].extent) == 408);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_d.matrix.batch.coordinate[0].by_extent.multiplier) == 412);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_d.matrix.batch.coordinate[0].by_extent.shift) == 416);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_d.matrix.batch.coordinate[1].stride) == 424);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_d.matrix.batch.coordinate[1].extent) == 432);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_d.matrix.batch.coordinate[1].by_extent.multiplier) == 436);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_d.matrix.batch.coordinate[1].by_extent.shift) == 440);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, a) == 448);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, b) == 456);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, c) == 464);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, d) == 472);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, lda) == 480);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, ldb) == 488);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, ldc) == 496);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, ldd) == 504);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_stride_a) == 512);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_stride_b) == 520);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_stride_c) == 528);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_stride_d) == 536);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, m) == 544);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, n) == 548);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, k) == 552);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.tiles_m) == 556);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.tiles_n) == 560);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.groups) == 564);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.matrix.multiplier) == 568);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.matrix.shift) == 572);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.group.multiplier) == 576);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.group.shift) == 580);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.narrow.multiplier) == 584);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.narrow.shift) == 588);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch) == 592);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, workspace) == 600);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, reduction_parts) == 608);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, epilogue.alpha_) == 616);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, epilogue.beta_) == 620);
static_assert(sizeof(Parameters) == 624);

extern "C" __global__ void __launch_bounds__(128)
s8_blocks_of_channels(const __grid_constant__ Parameters parameters) {
  tilewright::Sm80Gemm<Plan, Epilogue>(parameters).run();
}
