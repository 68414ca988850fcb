#include "tilewright/conv/stem_conv.cuh"
#include "tilewright/numeric/functions.cuh"

struct Plan {
  using Element = tilewright::bfloat16_t;
  static constexpr int kWarps = 4, kPositions = 112, kWarpTiles = 2;
  static constexpr int kTaps = 7, kRowK = 24, kStep = 6, kLine = 704, kSteps = 11;
  static constexpr int kTileM = 448, kTileN = 64, kSplitK = 1, kReductionCounters = 32768;
  static constexpr int kFilterBytes = 23552;
  // (filter, element of K) -> byte: ((2,4,4,2),176):((368,2944,736,11776),2)
  static __device__ constexpr tilewright::uint32_t filter_place(int filter, int k) { return filter / 2 % 4 * 2944 + (filter & 0x21) * 368 + filter / 8 % 4 * 736 + k * 2; }
  // (lane, pair of instructions, step) -> byte: ((8,2,2),4,11):((368,16,2944),5888,32)
  static __device__ constexpr tilewright::uint32_t fragment_place(int lane) { return lane % 8 * 368 + lane / 16 * 2944 + lane / 8 % 2 * 16; }
  static constexpr int kFragmentPair = 5888, kFragmentStep = 32;
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

using Parameters = tilewright::GemmParameters<Epilogue::Parameters, tilewright::NoGroups, tilewright::Im2colMatrix<false>>;
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
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, a) == 160);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, b) == 168);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, c) == 176);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, d) == 184);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, lda) == 192);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, ldb) == 200);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, ldc) == 208);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, ldd) == 216);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_stride_a) == 224);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_stride_b) == 232);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_stride_c) == 240);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_stride_d) == 248);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, m) == 256);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, n) == 260);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, k) == 264);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.tiles_m) == 268);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.tiles_n) == 272);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.groups) == 276);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.matrix.multiplier) == 280);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.matrix.shift) == 284);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.group.multiplier) == 288);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.group.shift) == 292);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.narrow.multiplier) == 296);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.narrow.shift) == 300);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch) == 304);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, workspace) == 312);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, reduction_parts) == 320);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, epilogue.alpha_) == 328);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, epilogue.beta_) == 332);
static_assert(sizeof(Parameters) == 336);

extern "C" __global__ void __launch_bounds__(128, 3)
stem_conv_bf16(const __grid_constant__ Parameters parameters) {
  tilewright::StemConv<Plan, Epilogue>(parameters).run();
}
