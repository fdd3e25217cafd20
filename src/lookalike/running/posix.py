"""What the workflow takes from POSIX systems: locks of files that the kernel drops, and processes that fork."""

try:
    import fcntl as fcntl
except ModuleNotFoundError:
    raise ImportError(
        "lookalike's workflow needs Linux or macOS: this system has no fcntl and no fork (on Windows, use WSL); "
        "its methods and losses need neither"
    ) from None
