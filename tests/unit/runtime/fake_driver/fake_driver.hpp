// The state of the fake libcuda, by which tests set its results and read its calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fake_driver {

/// The time that recording an event takes on the fake GPU. All other work takes none.
inline constexpr float kRecordMs = 1.5f;

/// Work on a stream. Tests may add entries of their own.
struct StreamWork {
  std::string what;  // "event", "host function"
  void* stream;
  bool operator==(const StreamWork&) const = default;
};

/// One recorded cuLaunchKernelEx.
struct Launch {
  unsigned grid[3];
  unsigned block[3];
  unsigned dynamic_smem_bytes;
  std::map<int, std::vector<unsigned>> attributes;  // id -> first three words of the value
  std::vector<std::byte> parameters;
};

/// One recorded cuTensorMapEncodeTiled or cuTensorMapEncodeIm2col.
struct TensorMap {
  int type;
  std::uint64_t address;
  std::vector<std::uint64_t> extents;
  std::vector<std::uint64_t> strides;  // of modes 1..
  std::vector<unsigned> box;           // empty for im2col
  std::vector<unsigned> element_strides;
  int interleave, swizzle, promotion, fill;
  std::vector<int> lower_corner, upper_corner;  // empty for boxes, like the rest
  unsigned channels_per_pixel = 0, pixels_per_column = 0;
};

struct State {
  int version = 13000;
  int device_count = 1;
  int memory_pools_supported = 1;
  int static_smem_bytes = 0;
  std::size_t free_bytes = std::size_t{1} << 30;
  int capture_status = 0;
  std::uint64_t capture_id = 0;
  int capture_mode = 0;  // that of the thread
  int capture_mode_at_unload = 0;
  std::vector<std::size_t> parameter_sizes;  // those of the loaded kernel

  std::map<std::string, int> failures;  // symbol -> the code that it returns from now on
  std::map<std::string, int> calls;     // symbol -> number of calls
  std::map<std::string, int> live;      // kind of handle -> number of handles that are not released
  int bad_releases = 0;                 // releases of handles that are not live
  std::vector<Launch> launches;
  std::vector<TensorMap> tensor_maps;
  std::size_t release_threshold = 0;

  std::vector<StreamWork> stream_work;    // in the order of the calls, of all streams
  float clock_ms = 0.0f;                  // the time on the fake GPU; tests may advance it
  std::map<void*, float> event_times_ms;  // event -> when it was last recorded
};

/// The state of the library, exported as fake_driver_state.
using GetState = State* (*)();

}  // namespace fake_driver
