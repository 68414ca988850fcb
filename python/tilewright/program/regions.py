"""Parts of kernels that are recorded in `with` statements: rings, roles and persistent tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tilewright._tilewright.program import (
    Accumulators,
    Number,
    PersistentTilesRecorder,
    RingReaderRecorder,
    RingWriterRecorder,
    RolesRecorder,
    RoleThread,
    StreamedTilesRecorder,
    TileIndex,
    TilePart,
)
from tilewright.program.kernel import Kernel


class RingWriter(RingWriterRecorder):
    """`RingWriter(k, ring)`: the part of a thread that writes. Made where the role begins."""

    @contextmanager
    def write(self) -> Iterator[Number]:
        """`with writer.write() as stage:` waits until the next stage is empty and, if TMA loads it, announces its
        bytes. The body appends the copies, and the arrivals of writers other than the announcement."""
        yield self.begin_write()
        self.end_write()


class RingReader(RingReaderRecorder):
    """`RingReader(k, ring, release=None)`: the part of threads that read. Made where the role begins.

    `release(barrier)` appends what frees a stage with the given empty barrier, the arrivals of this role; by default,
    each thread arrives.
    """

    @contextmanager
    def read(self) -> Iterator[Number]:
        """`with reader.read() as stage:` waits until the next stage is full, and releases it at the end."""
        stage = self.begin_read()
        yield stage
        self.end_read(stage)

    @contextmanager
    def read_by_wgmma(self, accumulators: Accumulators) -> Iterator[Number]:
        """The same for wgmma, which reads a stage after the body: the body commits one group. The stage is released
        when the next call has waited for that group, and the last one by drain()."""
        stage = self.begin_read_by_wgmma()
        yield stage
        self.end_read_by_wgmma(stage, accumulators.cells)

    def drain(self, accumulators: Accumulators) -> None:
        """Waits for all groups of wgmma and releases the last stage."""
        self.drain_cells(accumulators.cells)


@dataclass(frozen=True)
class Role:
    """A task of consecutive warpgroups. `registers` of each thread are set by setmaxnreg; 0: as many as at launch."""

    name: str
    warpgroups: int = 1
    registers: int = 0


class Roles(RolesRecorder):
    """`Roles(k, Role("producer", 1, registers=40), ...)`: the warpgroups of the roles follow each other. Registers are
    moved from roles with fewer to roles with more."""

    def __init__(self, k: Kernel, *roles: Role) -> None:
        super().__init__(k, [(role.name, role.warpgroups, role.registers) for role in roles])

    @contextmanager
    def play(self, name: str) -> Iterator[RoleThread]:
        """`with roles.play("producer") as me:` records what the threads of one role do."""
        yield self.begin(name)
        self.end()


class PersistentTiles(PersistentTilesRecorder):
    """`PersistentTiles(k, m, n, batch=1, raster_width=8, raster_along="m", max_groups=132)`: the tiles of a problem, in
    bands of `raster_width` columns that are walked along m, or of as many rows that are walked along n. `m`, `n`,
    `batch` are numbers of tiles. Sets the grid to at most `max_groups` groups of CTAs of the kernel's cluster, which
    each take every n-th group of tiles."""

    @contextmanager
    def for_each(self) -> Iterator[TileIndex]:
        """`with tiles.for_each() as tile:` records a loop over the tiles of this CTA."""
        yield self.begin()
        self.end()


class StreamedTiles(StreamedTilesRecorder):
    """`StreamedTiles(k, m, n, steps, batch=1, raster_width=8, raster_along="m", max_ctas=132)`: the steps along k of all
    tiles, one tile after another, of which each CTA computes an equal number. `steps` are those of each tile. A CTA has the
    rest of a tile that the CTA before it began, then whole tiles, then the beginning of one. There are at least as many
    tiles as CTAs, so that at most two share a tile. Sets the grid to at most `max_ctas` CTAs. CTAs are numbered from the
    last block on, so that one may wait for the one after it."""

    @contextmanager
    def for_each(self, cta: Number) -> Iterator[TilePart]:
        """`with tiles.for_each(tiles.cta()) as part:` records a loop over the parts of tiles of a CTA."""
        yield self.begin(cta)
        self.end()
