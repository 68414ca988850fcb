"""A kernel as a program: record it, print it, run it.

It runs on the device that TILEWRIGHT_DEVICE names, else on the GPU if there is one, else on the emulator.
"""

import numpy

from tilewright import program as tp


def vector_add() -> tp.Program:
    """out[i] = x[i] + y[i]"""
    k = tp.Kernel("vector_add", target="sm_80", threads=128)
    n = k.launch("n")
    x, y, out = (k.address(name, 4) for name in ("x", "y", "out"))
    k.set_grid(tp.ceil_div(n, 128))
    i = k.block() * 128 + k.thread
    with k.If(i < n):
        of_x = tp.load_global(k, x, i * 4, "f32")
        of_y = tp.load_global(k, y, i * 4, "f32")
        tp.store_global(k, out, i * 4, [tp.add(k, of_x, of_y)])
    return k.build()


def main() -> None:
    program = vector_add()
    print(program)
    n = 1000
    x, y = numpy.arange(n, dtype=numpy.float32), numpy.ones(n, numpy.float32)
    out = numpy.full(n, numpy.nan, numpy.float32)
    program.run(n=n, x=x, y=y, out=out)
    assert (out == x + y).all()


if __name__ == "__main__":
    main()
