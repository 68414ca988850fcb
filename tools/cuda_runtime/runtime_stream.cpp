// Streams, events and stream capture of the CUDA runtime.
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "tools/cuda_runtime/runtime_call.hpp"

namespace tilewright::cuda_runtime {
namespace {

/// The values that cudaStreamSetAttribute() has set, by the stream's id and the attribute.
std::map<std::pair<std::uint64_t, int>, cudaLaunchAttributeValue> attributes;

cudaStreamCaptureStatus status_of(const Stream& stream) {
  if (!stream.capture) return cudaStreamCaptureStatusNone;
  return stream.capture->is_invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
}

}  // namespace

thread_local cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;

TILEWRIGHT_EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return call([&](Machine& machine) {
    require(stream != nullptr);
    *stream = reinterpret_cast<cudaStream_t>(machine.create_stream(flags, priority));
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
TILEWRIGHT_EXPORT cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}
TILEWRIGHT_EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call([&](Machine& machine) { machine.destroy_stream(stream); });
}
TILEWRIGHT_EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call([&](Machine& machine) {
    Stream* const on = machine.stream(stream);
    if (on->capture) {
      on->capture->is_invalid = true;
      fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    machine.wait_for(on);
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }
TILEWRIGHT_EXPORT cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return call([&](Machine& machine) { *flags = machine.stream(stream)->flags; });
}
TILEWRIGHT_EXPORT cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return call([&](Machine& machine) { *priority = machine.stream(stream)->priority; });
}
TILEWRIGHT_EXPORT cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return call([&](Machine& machine) { *id = machine.stream(stream)->id; });
}
TILEWRIGHT_EXPORT cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return call([&](Machine& machine) {
    machine.stream(stream);
    *device = 0;
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void*, size_t, unsigned) {
  return call([&](Machine& machine) { machine.stream(stream); });
}
/// Attributes change nothing on the emulator; they can be read again.
TILEWRIGHT_EXPORT cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                                     const cudaLaunchAttributeValue* value) {
  return call([&](Machine& machine) {
    require(value != nullptr);
    attributes[{machine.stream(stream)->id, attribute}] = *value;
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaStreamGetAttribute(cudaStream_t handle, cudaLaunchAttributeID attribute,
                                                     cudaLaunchAttributeValue* value) {
  return call([&](Machine& machine) {
    const Stream* const stream = machine.stream(handle);
    require(value != nullptr);
    const auto found = attributes.find({stream->id, attribute});
    *value = found != attributes.end() ? found->second : cudaLaunchAttributeValue{};
    if (found == attributes.end() && attribute == cudaLaunchAttributePriority) value->priority = stream->priority;
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
  return call([&](Machine& machine) {
    const std::uint64_t source = machine.stream(from)->id, target = machine.stream(to)->id;
    const std::map<std::pair<std::uint64_t, int>, cudaLaunchAttributeValue> all = attributes;
    for (const auto& [key, value] : all) {
      if (key.first == source) attributes[{target, key.second}] = value;
    }
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return call([&](Machine& machine) { machine.wait(machine.stream(stream), machine.event(event)); });
}

// Events -------------------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call([&](Machine& machine) {
    require(event != nullptr);
    *event = reinterpret_cast<cudaEvent_t>(machine.create_event(flags));
  });
}
TILEWRIGHT_EXPORT cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
TILEWRIGHT_EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call([&](Machine& machine) { machine.destroy_event(event); });
}
TILEWRIGHT_EXPORT cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return call([&](Machine& machine) { machine.record(machine.event(event), machine.stream(stream)); });
}
TILEWRIGHT_EXPORT cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call([&](Machine& machine) { machine.record(machine.event(event), machine.stream(stream)); });
}
TILEWRIGHT_EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call([&](Machine& machine) { machine.wait_for(machine.event(event)); });
}
TILEWRIGHT_EXPORT cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call([&](Machine& machine) { machine.wait_for(machine.event(event)); });
}

/// The emulator's own time: it says nothing about a GPU.
TILEWRIGHT_EXPORT cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return call([&](Machine& machine) {
    Event* const from = machine.event(begin);
    Event* const to = machine.event(end);
    require(milliseconds != nullptr);
    if (!from->recorded || !to->recorded) {
      fail(CUDA_ERROR_INVALID_HANDLE,
           fmt::format("the {} event was never recorded", from->recorded ? "second" : "first"));
    }
    if (((from->flags | to->flags) & cudaEventDisableTiming) != 0)
      fail(CUDA_ERROR_INVALID_HANDLE, "an event was created with cudaEventDisableTiming");
    *milliseconds = std::chrono::duration<float, std::milli>(to->when - from->when).count();
    machine.wait_for(from);  // both events have completed, else there is an error
    machine.wait_for(to);
    machine.report.timed = true;
  });
}

// Capture ------------------------------------------------------------------------------------------------------------

TILEWRIGHT_EXPORT cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call([&](Machine& machine) {
    Stream* const on = machine.stream(stream);
    machine.begin_capture(on, std::make_shared<Graph>(), {});
    on->prohibits_unsafe_calls = mode == cudaStreamCaptureModeGlobal;
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                                            const cudaGraphNode_t* dependencies,
                                                            const cudaGraphEdgeData*, size_t count,
                                                            cudaStreamCaptureMode) {
  return call([&](Machine& machine) {
    std::vector<Node*> tail;
    for (std::size_t i = 0; i < count; ++i) tail.push_back(reinterpret_cast<Node*>(dependencies[i]));
    machine.begin_capture(machine.stream(stream), machine.graph(graph), tail);
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call([&](Machine& machine) {
    require(graph != nullptr);
    *graph = nullptr;
    *graph = machine.keep(machine.end_capture(machine.stream(stream)));
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return call([&](Machine& machine) {
    require(status != nullptr);
    *status = status_of(*machine.stream(stream));
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                                       unsigned long long* id, cudaGraph_t* graph,
                                                       const cudaGraphNode_t** dependencies,
                                                       const cudaGraphEdgeData** edges, size_t* count) {
  return call([&](Machine& machine) {
    require(status != nullptr);
    Stream* const on = machine.stream(stream);
    *status = status_of(*on);
    if (!on->capture) return;
    if (id != nullptr) *id = on->capture_id;
    if (graph != nullptr) *graph = machine.keep(on->capture);
    if (dependencies != nullptr) *dependencies = reinterpret_cast<const cudaGraphNode_t*>(on->tail.data());
    if (edges != nullptr) *edges = nullptr;
    if (count != nullptr) *count = on->tail.size();
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                                  const cudaGraphEdgeData*, size_t count,
                                                                  unsigned flags) {
  return call([&](Machine& machine) {
    Stream* const on = machine.stream(stream);
    require(on->capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
    if (flags == cudaStreamSetCaptureDependencies) on->tail.clear();
    for (std::size_t i = 0; i < count; ++i) on->tail.push_back(reinterpret_cast<Node*>(dependencies[i]));
  });
}

TILEWRIGHT_EXPORT cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return call([&](Machine&) {
    require(mode != nullptr);
    std::swap(*mode, capture_mode);
  });
}

}  // namespace tilewright::cuda_runtime
