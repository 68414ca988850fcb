#include "tilewright/conv/depthwise_wgrad.cuh"
#include "tilewright/numeric/functions.cuh"

struct Plan {
  using Gradient = tilewright::half_t;
  using Image = tilewright::half_t;
  using Accumulator = float;
  using ElementC = tilewright::half_t;
  using ElementD = tilewright::half_t;
  using Matrix = tilewright::Im2colMatrix<false>;
  static constexpr int kVector = 8, kTaps = 3, kStep = 1, kThreads = 256;
  static constexpr int kCounters = 32768, kPartsFrom = 286720;
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

using Parameters = tilewright::DepthwiseWgradParameters<Epilogue::Parameters, Plan::Matrix>;
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.image_stride) == 0);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.block_stride) == 8);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.h.stride) == 16);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.h.positions) == 24);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.h.taps) == 28);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.h.extent) == 32);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.h.step) == 36);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.h.tap_step) == 40);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.h.offset) == 44);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.h.divisor) == 48);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.h.by_positions.multiplier) == 52);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.h.by_positions.shift) == 56);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.h.by_taps.multiplier) == 60);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.h.by_taps.shift) == 64);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.h.by_divisor.multiplier) == 68);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.h.by_divisor.shift) == 72);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.w.stride) == 80);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.w.positions) == 88);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.w.taps) == 92);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.w.extent) == 96);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.w.step) == 100);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.w.tap_step) == 104);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.w.offset) == 108);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.w.divisor) == 112);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.w.by_positions.multiplier) == 116);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.w.by_positions.shift) == 120);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.w.by_taps.multiplier) == 124);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.w.by_taps.shift) == 128);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.w.by_divisor.multiplier) == 132);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.w.by_divisor.shift) == 136);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.channels) == 144);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.by_channels.multiplier) == 148);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, matrix.by_channels.shift) == 152);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, gradient) == 160);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, images) == 168);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, c) == 176);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, d) == 184);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, workspace) == 192);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, ldc) == 200);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, ldd) == 208);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, gradient_pitch) == 216);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, pitch) == 220);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, channels) == 224);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, channel_tiles) == 228);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, vectors) == 232);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, channels_of_tile) == 236);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, units) == 240);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, units_of_tile) == 244);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, unit_tiles) == 248);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tap_groups) == 252);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, lanes) == 256);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, segments) == 260);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, segments_of_row) == 264);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, positions_of_segment) == 268);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, segments_of_part) == 272);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, parts) == 276);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, by_segments_of_row.multiplier) == 280);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, by_segments_of_row.shift) == 284);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, epilogue.alpha_) == 288);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, epilogue.beta_) == 292);
static_assert(sizeof(Parameters) == 296);

extern "C" __global__ void __launch_bounds__(256)
depthwise_wgrad_f16(const __grid_constant__ Parameters parameters) {
  tilewright::DepthwiseWgrad<Plan, Epilogue>(parameters).run();
}
