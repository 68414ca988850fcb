#include "tilewright/gemm/sm90_gemm.cuh"
#include "tilewright/numeric/functions.cuh"

struct Plan {
  struct OperandA {  // shared memory, (mn, k) -> element offset: Sw<3,3,3> o 0 o ((8,16),(64,1)):((64,512),(1,8192))
    using Source = tilewright::GlobalMatrix;
    static constexpr bool kIsKMajor = true, kIsPointerArray = false;
    static constexpr int kTileBytes = 16384;
    static constexpr int kMn = 128, kK = 64, kElementBytes = 2;
    static constexpr int kAlignmentBytes = 2, kVectorBytes = 4, kRowBytes = 128;
    static constexpr bool kRoundsToTf32 = false;
    static __device__ constexpr tilewright::uint32_t place(tilewright::uint32_t mn, tilewright::uint32_t k) {
      return mn << 6 | k ^ (mn & 7) << 3;
    }
    // wgmma descriptor: start 0x0, leading 16, stride 1024, 128-byte swizzle
    static constexpr tilewright::uint64_t kDescriptor = 0x4000004000010000;
    // (mn, k) instruction -> descriptor offset in 16-byte units: (2,4):(512,2)
    static __device__ constexpr tilewright::uint32_t descriptor_offset([[maybe_unused]] int mn, int k) {
      return mn * 512 + k * 2;
    }
  };
  struct OperandB {  // shared memory, (mn, k) -> element offset: Sw<3,3,3> o 0 o ((64,1),(8,8)):((1,4096),(64,512))
    using Source = tilewright::GlobalMatrix;
    static constexpr bool kIsKMajor = false, kIsPointerArray = false;
    static constexpr int kTileBytes = 8192;
    static constexpr int kMn = 64, kK = 64, kElementBytes = 2;
    static constexpr int kAlignmentBytes = 2, kVectorBytes = 4, kRowBytes = 128;
    static constexpr bool kRoundsToTf32 = false;
    static __device__ constexpr tilewright::uint32_t place(tilewright::uint32_t mn, tilewright::uint32_t k) {
      return k << 6 | mn ^ (k & 7) << 3;
    }
    // wgmma descriptor: start 0x0, leading 0, stride 1024, 128-byte swizzle
    static constexpr tilewright::uint64_t kDescriptor = 0x4000004000000000;
    // (mn, k) instruction -> descriptor offset in 16-byte units: (1,4):(0,128)
    static __device__ constexpr tilewright::uint32_t descriptor_offset([[maybe_unused]] int mn, int k) {
      return k << 7;
    }
  };
  struct Wgmma {
    using Accumulator = float;
    static constexpr int kK = 16, kRegisters = 32;
    static __device__ __forceinline__ void fma(float (&d)[32], tilewright::uint64_t a, tilewright::uint64_t b,
                                               int accumulate) {
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, "
        "%24, %25, %26, %27, %28, %29, %30, %31"
        "}, %32, %33, p, 1, 1, 0, 1;\n}"
        :
        "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "l"(a), "l"(b), "r"(accumulate));
    }
  };
  using ElementC = tilewright::bfloat16_t;
  using ElementD = tilewright::bfloat16_t;
  using Source = tilewright::GlobalMatrix;
  using Output = tilewright::GlobalMatrix;
  static constexpr bool kCIsRowMajor = true, kDIsRowMajor = true;
  static constexpr bool kCIsPointerArray = false, kDIsPointerArray = false;
  static constexpr bool kAccumulatesInHalf = false;
  static constexpr int kTileM = 128, kTileN = 64, kTileK = 64;
  static constexpr int kConsumers = 2, kStages = 6, kConsumerArrivals = 1;
  static constexpr int kSharedTaps = 1, kSharedStep = 0;
  static constexpr bool kIsPingPong = false;
  static constexpr int kClusterM = 1, kClusterN = 1;
  using Raster = tilewright::Raster<1, false>;
  using Scheduler = tilewright::PersistentTiles<Plan>;
  using Groups = tilewright::NoGroups;
  static constexpr int kSplitK = 1, kCounterBytes = 286720, kReductionCounters = 32768;
  static constexpr int kProducerRegisters = 152, kConsumerRegisters = 176, kPlainLoadWords = 80;
  static constexpr int kPanelColumns = 64, kSubtilePanels = 1, kOutputBuffers = 2;
  static constexpr int kTensorMapSlots = 7;
  static constexpr int kTmaOutputs = 0, kTmaOutputBytes = 0;
  static constexpr int kSourceBytes = 2, kStoreBytes = 2;
  struct AccumulatorTile {  // (thread, value) -> coordinate: (((4,8),4),(2,2,8)):(((2@1,1@0),16@0),(1@1,8@0,8@1))
    static constexpr int kLaneRows = 1, kOtherRow = 8;
    static __device__ constexpr int row(int thread) {
      [[maybe_unused]] const int lane = thread % 32, warp = thread / 32;
      return lane / 4 + warp * 16;
    }
    static __device__ constexpr int column(int thread) {
      [[maybe_unused]] const int lane = thread % 32, warp = thread / 32;
      return lane % 4 * 2;
    }
  };
  struct Panel16 {  // shared memory, (row, column) -> byte offset: Sw<3,4,3> o 0 o ((8,8),(64,1)):((128,1024),(2,8192))
    static constexpr int kLine = 64, kLines = 64, kBoxes = 1;
    static __device__ constexpr tilewright::uint32_t place(tilewright::uint32_t row,
                                                           tilewright::uint32_t column) {
      return row * 128 + (column * 2 ^ row % 8 * 16);
    }
  };
  using PanelOfC = Panel16;
  using PanelOfD = Panel16;
  struct SharedMemory {
    static constexpr int kStageBytes = 24576;
    static constexpr int kOutputs = 147456, kOutputBytes = 16384;
    static constexpr int kStaging = 180224, kStagingBytes = 0;
    static constexpr int kOutputBarriers = 180224, kOutputBarrierBytes = 16;
    static constexpr int kRepackingBytes = 0;  // per warp
    static constexpr int kRingBarriers = 180256, kTensorMaps = 180352, kBytes = 180352;
  };
  template <int kAtoms>
  using Mainloop = tilewright::WarpgroupMainloop<Plan, kAtoms>;
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

using Parameters = tilewright::Sm90GemmParameters<Plan, Epilogue::Parameters>;
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, a.address) == 0);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, a.ld) == 8);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, a.batch_stride) == 16);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, b.address) == 24);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, b.ld) == 32);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, b.batch_stride) == 40);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, d.address) == 48);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, d.ld) == 56);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, d.batch_stride) == 64);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, m) == 72);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, n) == 76);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, k) == 80);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batches) == 84);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_step_a) == 88);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_step_b) == 92);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, batch_step_c) == 96);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.tiles_m) == 100);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.tiles_n) == 104);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.groups) == 108);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.matrix.multiplier) == 112);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.matrix.shift) == 116);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.group.multiplier) == 120);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.group.shift) == 124);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.narrow.multiplier) == 128);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, tiles.narrow.shift) == 132);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, c.address) == 136);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, c.ld) == 144);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, c.batch_stride) == 152);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, policy_a) == 160);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, policy_b) == 168);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, workspace) == 176);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, reduction_parts) == 184);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, epilogue.alpha_) == 192);
static_assert(TILEWRIGHT_OFFSET_OF(Parameters, epilogue.beta_) == 196);
static_assert(sizeof(Parameters) == 200);

extern "C" __global__ void __launch_bounds__(384, 1)
wgmma_bf16_gathered(const __grid_constant__ Parameters parameters) {
  tilewright::Sm90Gemm<Plan, Epilogue>(parameters).run();
}
