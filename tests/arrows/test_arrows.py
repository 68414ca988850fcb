"""A room includes only the rooms after its arrow in docs/ARCHITECTURE.md, and theirs; device/ includes only itself.

A header that lies in no room, tilewright/tilewright.hpp, is above all of them: it may include any, and none includes it.
"""

import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parents[2]
rows = re.findall(r"^tilewright/(\w+)/ +-> (.+?)(?: {2,}|$)", (root / "docs/ARCHITECTURE.md").read_text(), re.M)
arrows = {room: set(targets.split()) - {"nothing"} for room, targets in rows}


def reachable(room):
    return {room}.union(*(reachable(target) for target in arrows[room]))


def violations():
    for path in sorted((root / "tilewright").rglob("*.?pp")):
        room = path.relative_to(root / "tilewright").parts[0]
        allowed = arrows.keys() if room == path.name else reachable(room) if room in arrows else ()
        for included in re.findall(r'^\s*#\s*include\s*"tilewright/(\w+)', path.read_text(), re.M):
            if included not in allowed:
                yield f"{path.relative_to(root)}: {room} -> {included} is not an arrow"
    for path in sorted((root / "device").rglob("*.cuh")):
        for included in re.findall(r"^\s*#\s*include\s*(\S+)", path.read_text(), re.M):
            if not (root / "device" / included.strip('"')).is_file():
                yield f"{path.relative_to(root)}: includes {included}, which is not below device/"


assert len(arrows) == 14, f"docs/ARCHITECTURE.md lists {len(arrows)} rooms"
found = list(violations())
print("\n".join(found) or f"{len(arrows)} rooms, every include follows an arrow")
sys.exit(bool(found))
