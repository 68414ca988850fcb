"""cutlass_api.manifest: get_kernels() and the class Manifest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright import KernelMetadata, OperationArguments, find_kernels, list_kernels
from tilewright.errors import InvalidArgument

from .providers import available_providers

Filter = Callable[[KernelMetadata], bool]


def get_kernels(
    args: OperationArguments | None = None,
    metadata_filter: Filter | None = None,
    cc: int | None = None,
    providers: Sequence[str] | None = None,
) -> list[Any]:
    """The kernels that can compute `args`, best first; without `args` all kernels, in the order of their generation.

    metadata_filter  called with the KernelMetadata of each kernel, returns whether to keep it
    cc               a compute capability, such as 90; by default that of the device of the arrays
    providers        names of `providers.available_providers`; by default all of them
    """
    if not (metadata_filter is None or callable(metadata_filter)):
        raise TypeError(f"metadata_filter must be a function or None, got {metadata_filter!r:.80}")
    chosen = [*available_providers] if providers is None else [*providers]
    for name in chosen:
        if name not in available_providers:
            raise InvalidArgument(
                f"Provider {name} is not available: there are {', '.join(map(repr, available_providers))}"
            )

    def accept(metadata: KernelMetadata) -> bool:
        if not any(available_providers[name].has(metadata) for name in chosen):
            return False
        return metadata_filter is None or bool(metadata_filter(metadata))

    own = [name for name in chosen if available_providers[name].generates]
    found: list[Any] = []
    if args is None:
        found = list(list_kernels(accept, cc))
    else:
        families = available_providers["cutedsl"].families() if chosen == ["cutedsl"] else None
        is_refused = getattr(args, "_refusal", None) is not None or families == []
        found = [] if is_refused else list(find_kernels(args, accept, cc, families))
    for name in own:
        generated = available_providers[name].generate_kernels(
            metadata_filter or (lambda metadata: True), getattr(args, "epilogue", None), cc
        )
        found += [kernel for kernel in generated if args is None or kernel.supports(args)]
    return found


class Manifest:
    """A list of kernels that grows with each query."""

    def __init__(self) -> None:
        self.kernels: list[Any] = []

    get_kernels = staticmethod(get_kernels)

    def add_kernels(
        self,
        args: OperationArguments | None = None,
        metadata_filter: Filter | None = None,
        cc: int | None = None,
        providers: Sequence[str] | None = None,
    ) -> list[Any]:
        """Appends the kernels that get_kernels() finds, unless they are in the list, and returns those it found."""
        found = get_kernels(args, metadata_filter, cc, providers)
        known = {kernel.name for kernel in self.kernels}
        self.kernels += [kernel for kernel in found if kernel.name not in known]
        return found


__all__ = ["Manifest", "get_kernels"]
