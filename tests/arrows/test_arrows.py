"""A room includes only the rooms after its arrow in docs/ARCHITECTURE.md, and theirs. The folders of device/tilewright/
follow the arrows of their own list, and include nothing outside of device/.

Two headers lie in no room: tilewright/tilewright.hpp may include any room and none includes it; device's types.cuh
includes nothing and any folder may include it.
"""

import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parents[2]
document = (root / "docs/ARCHITECTURE.md").read_text()


def read_arrows(folder):
    rows = re.findall(rf"^{folder}(\w+)/ +-> (.+?)(?: {{2,}}|$)", document, re.M)
    return {room: set(targets.split()) - {"nothing"} for room, targets in rows}


def reachable(arrows, room):
    return {room}.union(*(reachable(arrows, target) for target in arrows[room]))


def host_violations(arrows):
    for path in sorted((root / "tilewright").rglob("*.?pp")):
        room = path.relative_to(root / "tilewright").parts[0]
        allowed = arrows.keys() if room == path.name else reachable(arrows, room) if room in arrows else ()
        for included in re.findall(r'^\s*#\s*include\s*"tilewright/(\w+)', path.read_text(), re.M):
            if included not in allowed:
                yield f"{path.relative_to(root)}: {room} -> {included} is not an arrow"


def device_violations(arrows):
    base = root / "device/tilewright"
    for path in sorted((root / "device").rglob("*.cuh")):
        folder = path.relative_to(base).parts[0]
        for included in re.findall(r"^\s*#\s*include\s*(\S+)", path.read_text(), re.M):
            header = root / "device" / included.strip('"')
            if not header.is_file():
                yield f"{path.relative_to(root)}: includes {included}, which is not below device/"
                continue
            target = header.relative_to(base).parts[0]
            allowed = {"types.cuh"} | reachable(arrows, folder) if folder in arrows else ()
            if target not in allowed:
                yield f"{path.relative_to(root)}: {folder} -> {target} is not an arrow"


rooms = read_arrows("tilewright/")
folders = read_arrows("device/tilewright/")
assert len(rooms) == 16, f"docs/ARCHITECTURE.md lists {len(rooms)} rooms"
assert len(folders) == 12, f"docs/ARCHITECTURE.md lists {len(folders)} folders of device/tilewright/"
found = [*host_violations(rooms), *device_violations(folders)]
print("\n".join(found) or f"{len(rooms)} rooms and {len(folders)} device folders, every include follows an arrow")
sys.exit(bool(found))
