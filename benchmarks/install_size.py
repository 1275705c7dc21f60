"""What an installation weighs in an empty environment, each distribution for itself.

Run: python benchmarks/install_size.py                     (this clone with the extra `local`)
     python benchmarks/install_size.py '.[local,chinese]' langgraph

Each word is what one environment installs. Counted are all files that a distribution lists, as pip compiles
them and without that, in MiB; pip and setuptools are left out. 1 MB is 10^6 bytes, 1 MiB 2^20.
"""

import subprocess
import sys
import tempfile
import venv
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
LARGEST = 12
BROUGHT_BY_PYTHON = {"pip", "setuptools"}


def weights(what: str) -> dict[str, tuple[int, int]]:
    """Bytes of each distribution that comes with `what`: compiled, and without what pip compiled."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = next(Path(folder).glob("*/python"))
        quietly = ("--quiet", "--disable-pip-version-check")
        subprocess.run([python, "-m", "pip", "install", *quietly, what], cwd=ROOT, check=True)
        sites = [str(each) for each in Path(folder).rglob("site-packages")]
        found = {}
        for each in distributions(path=sites):
            files = [Path(str(each.locate_file(file))) for file in each.files or ()]
            sizes = {file: file.stat().st_size for file in files if file.is_file()}
            plain = sum(size for file, size in sizes.items() if file.suffix != ".pyc")
            found[each.metadata["Name"]] = (sum(sizes.values()), plain)
        return {name: sizes for name, sizes in found.items() if name not in BROUGHT_BY_PYTHON}


def main() -> None:
    for what in sys.argv[1:] or [".[local]"]:
        found = weights(what)
        compiled, plain = (sum(sizes) for sizes in zip(*found.values(), strict=True))
        print(
            f"{what}: {compiled / 1e6:.0f} MB ({compiled / 2**20:.1f} MiB) as pip compiles it, "
            f"{plain / 1e6:.0f} MB ({plain / 2**20:.1f} MiB) with --no-compile"
        )
        for name, sizes in sorted(found.items(), key=lambda item: -item[1][0])[:LARGEST]:
            print(f"  {name:22}" + "".join(f"{size / 2**20:8.1f}" for size in sizes))


if __name__ == "__main__":
    main()
