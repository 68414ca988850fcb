"""Makes a root file system that has only the files of some Debian packages that this machine has installed, and of the
packages that they depend on, and runs shell scripts in it: as in a fresh container, without compilers or development
files. Needs root."""

import pathlib
import re
import shutil
import subprocess


def dependencies(packages: list[str]) -> set[str]:
    """The installed packages among these and among what they depend on, also indirectly."""
    listed = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${Package}\t${Pre-Depends}, ${Depends}\n"],
        capture_output=True, text=True, check=True,
    ).stdout
    needs = dict(line.split("\t") for line in listed.splitlines())
    found: set[str] = set()
    pending = list(packages)
    while pending:
        name = pending.pop()
        if name in needs and name not in found:
            found.add(name)
            pending += re.findall(r"(?:^|[,|])\s*([a-z0-9.+-]+)", needs[name])
    return found


class BareRoot:
    def __init__(self, folder: pathlib.Path, packages: list[str]) -> None:
        self.folder = folder
        for name in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "dev", "proc", "root", "tmp"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        for name in ("bin", "sbin", "lib", "lib64"):
            (folder / name).symlink_to(f"usr/{name}")
        listed = subprocess.run(
            ["dpkg-query", "--listfiles", *sorted(dependencies(packages))], capture_output=True, text=True, check=True
        ).stdout
        for line in listed.splitlines():
            self._copy(pathlib.Path(line))

    def _copy(self, path: pathlib.Path) -> None:
        """Copies a file or a symbolic link, but for documentation and what the machine does not have."""
        target = self.folder / str(path).lstrip("/")
        if path.parts[1:3] == ("usr", "share") and path.parts[3:4] in (("doc",), ("man",), ("locale",)):
            return
        if path.is_symlink() or path.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.is_symlink() and not target.exists():
                shutil.copy2(path, target, follow_symlinks=False)

    def run(self, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs a script of bash in /root, which has no variables but these and no devices but /dev/null."""
        mounts = f"mount -t proc proc {self.folder}/proc && mount -t tmpfs tmpfs {self.folder}/dev && " \
                 f"mknod -m 666 {self.folder}/dev/null c 1 3"
        variables = [f"{name}={value}" for name, value in environment.items()]
        inside = ["env", "-i", "HOME=/root", "PATH=/usr/bin:/bin", *variables, "bash", "-euc", f"cd\n{script}"]
        return subprocess.run(
            ["unshare", "--mount", "--fork", "--pid", "sh", "-c",
             f'{mounts} && exec chroot {self.folder} "$@"', "sh", *inside],
            capture_output=True, text=True, timeout=600, check=False,
        )
