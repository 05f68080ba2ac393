"""The course's tools. In another Python than the course's, be it Python 2, they say what to do."""

import sys

try:
    from importlib.util import find_spec

    is_the_courses = sys.version_info >= (3, 11) and find_spec("nbval") is not None
except ImportError:  # Python 2
    is_the_courses = False
if not is_the_courses:
    sys.exit(
        "The course is not installed in this Python, " + sys.version.split()[0] + ": in the folder "
        "of the course, type .venv/bin/python (on Windows .venv\\Scripts\\python) instead of "
        "python; if there is no folder .venv, type make lab first, or read docs/install.md."
    )
