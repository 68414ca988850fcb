"""The layers that conv2d.py measures: those of common networks, and others that are drawn at random.

Nothing here needs torch, so that the tests of the draw run anywhere.
"""

import dataclasses
import math
import random

KINDS = ("fprop", "dgrad", "wgrad")


@dataclasses.dataclass(frozen=True)
class Layer:
    """x (n, c, h, w) and w (k, c / groups, r, s), with a padding on both sides of x."""

    id: str
    n: int
    h: int
    w: int
    c: int
    k: int
    r: int
    s: int
    stride: int
    padding: int
    dilation: int
    groups: int
    type: str
    group: str  # of layers whose ratios are averaged
    kinds: tuple = KINDS

    def shapes(self):
        p, q = (
            (extent + 2 * self.padding - (taps - 1) * self.dilation - 1) // self.stride + 1
            for extent, taps in ((self.h, self.r), (self.w, self.s))
        )
        w = (self.k, self.c // self.groups, self.r, self.s)
        return {"x": (self.n, self.c, self.h, self.w), "w": w, "y": (self.n, self.k, p, q)}

    def operations(self):
        shapes = self.shapes()
        return 2.0 * math.prod(shapes["y"]) * math.prod(shapes["w"][1:])

    def element_bytes(self):
        return {"tf32": 4}.get(self.type, 2)

    def moved_bytes(self):
        """Each tensor once."""
        return self.element_bytes() * sum(math.prod(shape) for shape in self.shapes().values())

    def describe(self):
        fields = dataclasses.asdict(self)
        return {name: fields[name] for name in fields if name not in ("id", "kinds")}


def layer(text, group, type="bf16", dilation=1, groups=1, kinds=KINDS):
    """A layer from "V01 32 56x56 64 64 3x3 s1 p1": name, images, pixels, channels, filters, taps, stride, padding."""
    name, n, pixels, c, k, taps, stride, padding = text.split()
    h, w = map(int, pixels.split("x"))
    r, s = map(int, taps.split("x"))
    numbers = (int(stride[1:]), int(padding[1:]), dilation, groups)
    return Layer(name, int(n), h, w, int(c), int(k), r, s, *numbers, type, group, kinds)


LAYERS = [
    layer("V01 32 56x56 64 64 3x3 s1 p1", "middle"),
    layer("V02 32 28x28 128 128 3x3 s1 p1", "middle"),
    layer("V03 32 14x14 256 256 3x3 s1 p1", "middle"),
    layer("V04 32 7x7 512 512 3x3 s1 p1", "middle"),
    layer("V05 32 56x56 64 256 1x1 s1 p0", "1x1"),
    layer("V06 32 28x28 512 128 1x1 s1 p0", "1x1"),
    layer("V07 32 56x56 256 512 1x1 s2 p0", "strided"),
    layer("V08 32 56x56 128 128 3x3 s2 p1", "strided"),
    layer("V09 32 14x14 512 512 3x3 s2 p1", "strided"),
    layer("V10 256 56x56 64 64 3x3 s1 p1", "large"),
    layer("V11 256 14x14 256 256 3x3 s1 p1", "large"),
    layer("V12 1 56x56 64 64 3x3 s1 p1", "few images"),
    layer("V13 1 7x7 512 512 3x3 s1 p1", "few images"),
    layer("V14 8 28x28 128 128 3x3 s1 p1", "few images"),
    layer("V15 32 224x224 3 64 7x7 s2 p3", "stem", kinds=("fprop", "wgrad")),
    layer("V16 256 224x224 3 64 7x7 s2 p3", "stem", kinds=("fprop", "wgrad")),
    layer("V17 32 224x224 3 96 4x4 s4 p0", "stem", kinds=("fprop", "wgrad")),
    layer("V18 32 224x224 3 32 3x3 s2 p1", "stem", kinds=("fprop", "wgrad")),
    layer("V19 8 640x640 3 32 6x6 s2 p2", "stem", type="f16", kinds=("fprop", "wgrad")),
    layer("V20 32 56x56 96 192 2x2 s2 p0", "strided"),
    layer("V21 32 56x56 96 96 7x7 s1 p3", "depthwise", groups=96),
    layer("V22 32 14x14 384 384 7x7 s1 p3", "depthwise", groups=384),
    layer("V23 256 56x56 144 144 5x5 s2 p2", "depthwise", groups=144),
    layer("V24 256 112x112 32 16 1x1 s1 p0", "1x1"),
    layer("V25 256 14x14 112 672 1x1 s1 p0", "1x1"),
    layer("V26 8 64x64 320 320 3x3 s1 p1", "large"),
    layer("V27 8 32x32 1280 1280 3x3 s1 p1", "large"),
    layer("V28 2 64x64 960 640 3x3 s1 p1", "large"),
    layer("V29 8 128x128 320 320 3x3 s2 p1", "strided"),
    layer("V30 1 1024x1024 128 128 3x3 s1 p1", "large", kinds=("fprop",)),
    layer("V31 1 512x512 512 256 3x3 s1 p1", "large", kinds=("fprop",)),
    layer("V32 1 1024x1024 128 3 3x3 s1 p1", "few filters", kinds=("fprop",)),
    layer("V33 8 284x284 128 128 3x3 s1 p0", "large"),
    layer("V34 32 80x80 64 128 3x3 s2 p1", "strided", type="f16"),
    layer("V35 32 20x20 512 255 1x1 s1 p0", "1x1", type="f16"),
    layer("V36 8 65x65 2048 256 3x3 s1 p12", "large", dilation=12),
    layer("V37 32 35x35 48 64 5x5 s1 p2", "few channels"),
    layer("V38 32 14x14 512 512 3x3 s1 p1", "groups", groups=32),
    layer("V40 32 14x14 256 256 3x3 s1 p1", "middle", type="tf32"),
]


# Random layers are drawn from these values. A value that is listed twice is drawn twice as often.
TYPES = ("bf16", "bf16", "bf16", "f16", "f16", "tf32")
PLACES = ("dense",) * 7 + ("groups", "groups", "depthwise", "depthwise", "stem", "stem")
TAPS = ("1x1", "1x1", "2x2", "3x3", "3x3", "3x3", "3x3", "5x5", "7x7", "1x7", "5x1")
STEM_TAPS = ("3x3", "3x3", "4x4", "5x5", "7x7", "7x7", "8x8", "16x16")
DEPTHWISE_TAPS = ("3x3", "3x3", "5x5", "7x7", "9x9")
STRIDES = (1, 1, 1, 1, 1, 2, 2, 3)
DILATIONS = (1,) * 8 + (2, 3)
CHANNEL_MULTIPLES = (1, 8, 8, 16, 16, 32, 32, 64, 64, 64)
IMAGE_MULTIPLES = (1, 1, 4, 8)
LEAST_OPERATIONS, MOST_OPERATIONS = 5e7, 1e11
MOST_BYTES = 4e8


def log_uniform(draw, least, most, multiple=1):
    """A multiple of `multiple` from `least` to `most`, whose logarithm has a uniform distribution."""
    value = math.exp(draw.uniform(math.log(least), math.log(most)))
    return max(multiple, round(value / multiple) * multiple)


def place_of(case):
    """The group of a random layer: what is unusual about it, the rarest first."""
    rules = {
        "stem": case.c <= 8 and case.groups == 1,
        "depthwise": 1 < case.groups == case.c,
        "groups": case.groups > 1,
        "tf32": case.type == "tf32",
        "odd channels": case.c % 8 != 0 or case.k % 8 != 0,
        "dilated": case.dilation > 1,
        "strided": case.stride > 1,
        "1x1": case.r == case.s == 1,
        "few channels": case.c % 64 != 0,
    }
    return next((group for group, applies in rules.items() if applies), "others")


def drawn(draw, id):
    """One draw of a layer, which may be empty or too large."""
    place, type = draw.choice(PLACES), draw.choice(TYPES)
    taps = draw.choice({"stem": STEM_TAPS, "depthwise": DEPTHWISE_TAPS}.get(place, TAPS))
    r, s = map(int, taps.split("x"))
    stride, dilation, groups, kinds = draw.choice(STRIDES), draw.choice(DILATIONS), 1, KINDS
    c, k = (log_uniform(draw, 8, 2048, draw.choice(CHANNEL_MULTIPLES)) for _ in "ck")
    if place == "stem":
        c, k, dilation = draw.choice((1, 3, 3, 3, 4)), log_uniform(draw, 16, 256, 16), 1
        stride = draw.choice((1, 2, 2, max(r, s)))
        kinds = KINDS if draw.random() < 0.5 else ("fprop", "wgrad")  # the images of a network have no gradient
    elif place == "depthwise":
        c = k = groups = log_uniform(draw, 16, 1536, 8)
    elif place == "groups":
        groups = 2 ** draw.randint(1, 6)
        each = log_uniform(draw, 4, 128, 4)
        c, k = groups * each, groups * each * draw.choice((1, 1, 1, 2))
    smallest = 64 if place == "stem" else 7
    h = log_uniform(draw, smallest, 384 if place == "stem" else 160, draw.choice(IMAGE_MULTIPLES))
    w = h if draw.random() < 0.75 else log_uniform(draw, smallest, 160, draw.choice(IMAGE_MULTIPLES))
    same = (max(r, s) - 1) * dilation // 2
    padding = draw.choice((same, same, same, 0, draw.randint(0, same)))
    if stride == max(r, s) > 3:
        padding = 0  # patches
    n = log_uniform(draw, 1, 256, draw.choice((1, 1, 8)))
    case = Layer(id, n, h, w, c, k, r, s, stride, padding, dilation, groups, type, "", kinds)
    return dataclasses.replace(case, group=place_of(case))


def random_layers(seed, count):
    """Layers number 0 to count - 1 of a seed. Layer R7-012 is number 12 of seed 7, whatever the count."""
    for number in range(count):
        draw = random.Random(f"{seed}:{number}")
        while True:
            case = drawn(draw, f"R{seed}-{number:03}")
            is_empty = min(case.shapes()["y"]) < 1
            if (
                not is_empty
                and LEAST_OPERATIONS <= case.operations() <= MOST_OPERATIONS
                and case.moved_bytes() <= MOST_BYTES
            ):
                break
        yield case
