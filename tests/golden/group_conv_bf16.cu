#include "tilewright/conv/group_conv.cuh"
#include "tilewright/numeric/functions.cuh"

struct Plan {
  using Element = tilewright::bfloat16_t;
  using MatrixB = tilewright::Im2colMatrix<false>;
  static constexpr int kWarps = 8, kRows = 2, kPositions = 16, kWarpTiles = 1;
  static constexpr int kGroups = 4, kChannels = 16, kOctets = 18, kSteps = 9;
  static constexpr int kTileM = 32, kTileN = 16, kSplitK = 1, kReductionCounters = 32768;
  static constexpr int kPixel = 144, kFilterLine = 304, kLaneColumns = 4;
  // filter -> byte: (2,2,4,1):(304,2432,608,4864)
  static __device__ constexpr tilewright::uint32_t filter_place(int filter) { return filter / 2 % 2 * 2432 + filter / 4 * 608 + filter % 2 * 304; }
  // (lane, pair of instructions) -> byte: ((8,2,2),1):((304,16,2432),4864)
  static __device__ constexpr tilewright::uint32_t fragment_place(int lane) { return lane % 8 * 304 + lane / 16 * 2432 + lane / 8 % 2 * 16; }
  static constexpr int kFragmentPair = 4864;
  using ElementC = tilewright::bfloat16_t;
  using ElementD = tilewright::bfloat16_t;
  using LayoutC = tilewright::RowMajor;
  using LayoutD = tilewright::RowMajor;
  using MatrixC = tilewright::StridedMatrix;
  using MatrixD = tilewright::StridedMatrix;
  static constexpr int kAlignmentC = 8;
  static constexpr int kAlignmentD = 8;
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

using Parameters = tilewright::GemmParameters<Epilogue::Parameters, tilewright::NoGroups, tilewright::Im2colMatrix<false>, Plan::MatrixB>;
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
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.image_stride) == 160);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.block_stride) == 168);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.h.stride) == 176);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.h.positions) == 184);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.h.taps) == 188);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.h.extent) == 192);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.h.step) == 196);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.h.tap_step) == 200);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.h.offset) == 204);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.h.divisor) == 208);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.h.by_positions.multiplier) == 212);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.h.by_positions.shift) == 216);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.h.by_taps.multiplier) == 220);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.h.by_taps.shift) == 224);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.h.by_divisor.multiplier) == 228);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.h.by_divisor.shift) == 232);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.w.stride) == 240);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.w.positions) == 248);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.w.taps) == 252);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.w.extent) == 256);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.w.step) == 260);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.w.tap_step) == 264);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.w.offset) == 268);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.w.divisor) == 272);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.w.by_positions.multiplier) == 276);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.w.by_positions.shift) == 280);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.w.by_taps.multiplier) == 284);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.w.by_taps.shift) == 288);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.w.by_divisor.multiplier) == 292);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.w.by_divisor.shift) == 296);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.channels) == 304);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.by_channels.multiplier) == 308);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix_b.matrix.by_channels.shift) == 312);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, a) == 320);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, b) == 328);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, c) == 336);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, d) == 344);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, lda) == 352);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, ldb) == 360);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, ldc) == 368);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, ldd) == 376);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_stride_a) == 384);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_stride_b) == 392);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_stride_c) == 400);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_stride_d) == 408);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, m) == 416);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, n) == 420);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, k) == 424);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.tiles_m) == 428);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.tiles_n) == 432);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.groups) == 436);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.matrix.multiplier) == 440);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.matrix.shift) == 444);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.group.multiplier) == 448);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.group.shift) == 452);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.narrow.multiplier) == 456);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.narrow.shift) == 460);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch) == 464);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, workspace) == 472);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, reduction_parts) == 480);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, epilogue.alpha_) == 488);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, epilogue.beta_) == 492);
static_assert(sizeof(Parameters) == 496);

extern "C" __global__ void __launch_bounds__(256, 3)
group_conv_bf16(const __grid_constant__ Parameters parameters) {
  tilewright::GroupConv<Plan, Epilogue>(parameters).run();
}
