"""A file system of a few megabytes, for tests that fill it to the last byte. It takes the right to mount one."""

import contextlib
import os
import subprocess


@contextlib.contextmanager
def small_disk(folder, size):
    """Mounts a file system of so many bytes at `folder`; yields False where nothing can be mounted."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder]
    is_mounted = subprocess.run(mount, capture_output=True).returncode == 0
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk, free):
    """Leaves so many bytes free, in whole pages, where there are more. Removing `disk / "ballast"` ends it."""
    with open(disk / "ballast", "wb") as file:
        while (available := os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize) > free:
            with contextlib.suppress(OSError):  # somebody else wrote meanwhile
                os.posix_fallocate(file.fileno(), 0, available - free)
                return
