"""Write a copy of the course for students: the last commit, without the solutions of the exercises.

    python -m tools.handout FOLDER

The solutions also contain the hidden checks and the wrong answers that test them. The tests of the
course are left out, because some contain an answer, and so is each notebook that is no lesson and
no exercise, because it may be what a student handed in.
"""

import io
import subprocess
import sys
import tarfile
from pathlib import Path

from tools import notebooks

WITHHELD = ("notebooks/solutions", "tests", ".ci", ".github")
MARKS = ("### BEGIN SOLUTION", "### BEGIN HIDDEN TESTS")  # of nbgrader, in a solution's cells


def write(folder: Path, root: Path = notebooks.ROOT) -> int:
    """Copy what ``root``'s last commit holds into a new ``folder``; return the number of files.

    Raises a ValueError with a sentence if there is no commit, if the folder is not empty, or if a
    notebook outside of the solutions contains one.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is not an empty folder: name a new one, so nothing is lost")
    # HEAD:./ is this folder, also where it is a part of a larger repository.
    archive = subprocess.run(["git", "archive", "HEAD:./"], cwd=root, capture_output=True)
    if archive.returncode:
        reason = archive.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise ValueError(f"git cannot read the course's last commit here: {' '.join(reason)}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        members = [member for member in tar if is_for_students(member.name)]
        for member in members:
            if member.name.endswith(".ipynb"):
                text = tar.extractfile(member).read().decode()
                if any(mark in text for mark in MARKS):
                    raise ValueError(
                        f"{member.name} contains a solution: run make refresh, and commit the "
                        "exercises that it releases"
                    )
        folder.mkdir(parents=True, exist_ok=True)
        tar.extractall(folder, members, filter="data")
    return sum(member.isfile() for member in members)


def is_for_students(name: str) -> bool:
    """Whether a file or a folder of the course belongs into the students' copy."""
    if any(f"{name}/".startswith(f"{withheld}/") for withheld in WITHHELD):
        return False
    return name.startswith("notebooks/") or not name.endswith(".ipynb")


def uncommitted(root: Path = notebooks.ROOT) -> list[str]:
    """The files that differ from the last commit, and so are not handed out as they are."""
    command = ["git", "status", "--porcelain", "-z", "--no-renames", "--", "."]
    status = subprocess.run(command, cwd=root, capture_output=True, text=True).stdout
    return [entry[3:] for entry in status.split("\0") if entry]


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not arguments[0].strip():
        print("Name a new folder for the students' copy: make handout FOLDER=../for-students")
        return 2
    folder = Path(arguments[0]).expanduser()
    try:
        files = write(folder)
    except (ValueError, OSError) as error:
        print(f"Nothing was handed out: {error}.")
        return 1
    print(f"{folder}: {files} files of the last commit, without {', '.join(WITHHELD)}")
    if changed := uncommitted():
        more = f" and {len(changed) - 5} others" if len(changed) > 5 else ""
        print(
            f"not handed out as they are now, because of no commit: {', '.join(changed[:5])}{more}"
        )
    print("It has no git history, which would contain the solutions. make test works in it.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
