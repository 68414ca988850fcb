"""Reads problem files for the benchmarks in Python."""

import dataclasses

ELEMENT_BYTES = {"bf16": 2, "f16": 2}


@dataclasses.dataclass(frozen=True)
class DenseTn:
    """A product of two bf16 or f16 matrices, A row-major and B column-major (both K-major)."""

    id: str
    dtype: str
    m: int
    n: int
    k: int
    lda: int
    ldb: int
    ldd: int

    def why_not_tma(self):
        """Why TMA cannot access the rows of an operand; empty if it can access all operands."""
        for name, ld in [("A", self.lda), ("B", self.ldb), ("D", self.ldd)]:
            stride = ld * ELEMENT_BYTES[self.dtype]
            if stride % 16:
                return f"rows of {name} are {stride} bytes apart: must be a multiple of 16 for TMA"
        return ""


def dense_tn(path):
    """The dense TN cases of a problem file that have an id, in the order of the file. Other problems are skipped."""
    for line in path.read_text().splitlines():
        fields = dict(word.split("=") for word in line.split("#")[0].split())
        m, n, k = (int(fields.get(extent, 0)) for extent in "mnk")
        layouts = [fields.get(operand, "row") for operand in "abd"]
        plain = not fields.keys() & {"batch", "out", "acc", "math", "epilogue"}
        if "id" not in fields or fields["dtype"] not in ELEMENT_BYTES or layouts != ["row", "col", "row"] or not plain:
            continue
        lda, ldb, ldd = (int(fields.get(key, packed)) for key, packed in [("lda", k), ("ldb", k), ("ldd", n)])
        yield DenseTn(fields["id"], fields["dtype"], m, n, k, lda, ldb, ldd)
