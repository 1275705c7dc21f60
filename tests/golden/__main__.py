"""Write the golden files anew: `python -m tests.golden --write`; without it, tell which would change."""

import sys

from tests.golden.files import FILES, HERE


def main() -> int:
    changed = 0
    for name, lines in FILES.items():
        path, text = HERE / f"{name}.txt", "".join(f"{line}\n" for line in lines()).encode()
        if path.exists() and path.read_bytes() == text:
            continue
        changed += 1
        print(path.name)  # noqa: T201
        if "--write" in sys.argv[1:]:
            path.write_bytes(text)
    return int(changed > 0 and "--write" not in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
