"""Times calls on a GPU side by side by replaying CUDA graphs of them, so that the host's time is not measured."""

import functools
import random

import torch

TARGET_US = 2000.0  # of each replay: short calls are captured several times


@functools.cache
def capture_stream():
    """The stream of all captures: a library keeps a workspace for each stream that it was called on."""
    return torch.cuda.Stream()


def captured(call, times):
    """A CUDA graph of `times` calls."""
    side = capture_stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            call()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        for _ in range(times):
            call()
    return graph


def replayed_us(graph):
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    graph.replay()
    stop.record()
    torch.cuda.synchronize()
    return 1000.0 * start.elapsed_time(stop)


def samples_of(calls, rounds):
    """Microseconds of each call, and why a call cannot be measured."""
    graphs, missing = {}, {}
    for name, call in calls.items():
        try:
            us = replayed_us(captured(call, 1))
            times = max(1, round(TARGET_US / us))
            graphs[name] = (captured(call, times), times)
        except RuntimeError as error:
            missing[name] = str(error).splitlines()[0]
    samples = {name: [] for name in graphs}
    for number in range(rounds + 2):
        for name in random.sample(list(graphs), len(graphs)):
            graph, times = graphs[name]
            us = replayed_us(graph) / times
            if number >= 2:  # the first rounds warm up
                samples[name].append(us)
    return samples, missing
