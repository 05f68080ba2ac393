"""Whether another package ``helpers`` hides the course's: ``python -m tools.python_path``.

A reader's own code may have a package of this name too. Python imports the one that it finds first,
and a folder on PYTHONPATH comes before the course.
"""

import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def problem() -> str | None:
    """A sentence about another package ``helpers`` that would be imported; None if there is none.

    The kernel of a notebook looks in the folders on PYTHONPATH, and then in its own folder. A
    folder without an ``__init__.py`` hides nothing.
    """
    listed = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    folders = [folder for folder in listed if folder] + [str(Path.cwd())]
    found = PathFinder.find_spec("helpers", folders)
    if not found or not found.origin or Path(found.origin).resolve().is_relative_to(ROOT):
        return None
    return (
        f"Python must find the course's package helpers first, but finds {found.origin}: rename "
        "that package, or take its folder off PYTHONPATH, and type the command in the course's "
        "folder"
    )


if __name__ == "__main__":
    sys.exit(problem())
