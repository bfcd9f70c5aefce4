"""What can become of a file: half of it, a bit of it, none of it, something else in its place."""


def cut(path, share):
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])


def flip(path, share):
    content = bytearray(path.read_bytes())
    content[int(share * len(content))] ^= 0x10
    path.write_bytes(content)


def empty(path, share):
    path.write_bytes(b"")


def missing(path, share):
    path.unlink()


def folder(path, share):
    path.unlink()
    path.mkdir()


def web_page(path, share):
    path.write_bytes(b"<!DOCTYPE html><html><body>404 Not Found</body></html>\n")


def unreadable(path, share):
    path.chmod(0)


def zeros(path, share):
    """The same number of bytes, none of them right: a block of the disk that was never written."""
    path.write_bytes(bytes(path.stat().st_size))


# By name; `share` in [0, 1) is where it happens.
DAMAGES = {
    "cut": cut,
    "flip": flip,
    "empty": empty,
    "missing": missing,
    "folder": folder,
    "web page": web_page,
    "zeros": zeros,
}
