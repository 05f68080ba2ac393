"""``make grade SUBMISSIONS=folder`` grades a class's exercises, each submission in a sandbox.

    python -m grading SUBMISSIONS [--lesson 03] [--due 2026-12-01] [--out grades]
    python -m grading SUBMISSIONS --shard 1/4 --out part1      (about a quarter of the class)
    python -m grading --merge part1 part2 part3 part4 --out grades

Submissions are ``folder/STUDENT/NN_name.ipynb``. A second call grades only what is new or changed.
The data flows one way through the modules: ``submissions`` finds and reads files, and
``moodle_canvas`` those of a download; ``answers`` has what a student wrote, cell by cell;
``kernel`` runs it in a ``sandbox``, where ``kernel_side`` serves it; ``score`` gives points,
``results`` stores them, and ``tables``, ``feedback`` and ``moodle_canvas`` show them.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

try:
    from grading import (
        by_hand,
        deadlines,
        ids,
        kernel,
        moodle_canvas,
        results,
        sandbox,
        submissions,
        tables,
        workers,
    )
    from tools import exercise_sets, notebooks
except ModuleNotFoundError as error:
    sys.exit(
        f"Grading needs {error.name}, which is not here. It needs Linux, Python 3.11 to 3.15, and "
        "what make grade installs: pip install -r requirements-grade.txt -c constraints.txt"
    )
except KeyboardInterrupt:  # the imports take seconds
    sys.exit(130)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    out = options.out.resolve()
    try:
        make_folder(out)
        if out.is_relative_to(notebooks.ROOT):
            (out / ".gitignore").write_text("*\n")  # neither git nor the linter looks inside
        return merge(options, out) if options.merge else grade(options, out)
    except KeyboardInterrupt:
        print("stopped; the next call goes on from here", file=sys.stderr)
        return 130
    except OSError as error:  # such as that a disk is full
        print(f"stopped: {error}; the next call goes on from here", file=sys.stderr)
        return 2
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2


def make_folder(out: Path) -> None:
    """Raises a ValueError if it cannot be written to, before anything is graded."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=out).close()
    except OSError as error:
        raise ValueError(
            f"--out: {out} cannot be written to ({error.strerror}): name another folder"
        ) from None


def grade(options: argparse.Namespace, out: Path) -> int:
    limits = sandbox.Limits(
        cell=options.cell_seconds,
        submission=options.seconds,
        memory=options.memory,
        sandbox=not options.no_sandbox,
        see=tuple(options.see),
        hide=tuple(str(path.resolve()) for path in (options.folder, out, options.sets)),
    )
    if problem := sandbox.problem(limits):
        raise ValueError(problem)
    due = deadlines.parse_due(options.due) if options.due else None
    if not 0 <= options.late_penalty <= 100:
        raise ValueError(f"--late-penalty: expected 0 to 100, but got {options.late_penalty:g}")
    if options.late_penalty and not due:
        raise ValueError("--late-penalty needs --due: give the day, such as --due 2026-12-01")
    if due:
        print(f"late is what came after {due:%Y-%m-%d %H:%M:%S %Z} (UTC{due:%z})")
    sets, roster = sets_in(options), []
    if options.roster:
        roster = submissions.read_roster(options.roster)
    names = moodle_canvas.read_names(options.names) if options.names else {}
    people: dict[str, moodle_canvas.Person] = {}
    if handed_in := moodle_canvas.people_in(options.folder):
        people = moodle_canvas.by_id(handed_in, names)
        files = {student: person.files for student, person in people.items()}
        students = {student: [] for student in roster} | files
    else:
        students = submissions.students_in(options.folder, roster, names)
    # A timestamp.txt in a download is the student's own.
    stamped = options.timestamps and not people
    deadline = deadlines.Deadline(due, options.late_penalty, stamped)
    number, shards = shard(options.shard)
    whole_class = submissions.find_submissions(students, sets, deadline)
    if not whole_class:
        found = [name for name, _ in submissions.files_in(options.folder)]
        raise ValueError(
            f"{options.folder} holds no exercises of a student: "
            "expected FOLDER/STUDENT/NN_name.ipynb, but found "
            f"{', '.join(found[:5]) or 'no file'}{' …' if len(found) > 5 else ''}"
        )
    handed_in = [
        item for item in whole_class if int(ids.hash_of(item.student), 16) % shards == number - 1
    ]
    if unknown := set(options.student) - {item.student for item in handed_in}:
        raise ValueError(f"--student must be one who handed in, but got {', '.join(unknown)}")
    todo = [item for item in handed_in if not options.student or item.student in options.student]
    marks = dated_marks(out, submissions.most_points(handed_in))
    before = results.load_all(out)
    with kernel.scratch_folder() as scratch:
        grader = results.Grader(
            out,
            limits,
            marks,
            Path(scratch),
            options.closed,
            again=bool(options.student),
            secret=results.secret_of(out),
        )
        try:
            workers.grade(todo, grader, max(options.jobs, 1))
        finally:
            graded = [result for item in handed_in if (result := grader.result(item))]
            finish(out, graded, before, marks, people)
    return 0


def merge(options: argparse.Namespace, out: Path) -> int:
    """Put shards together, and marks that were entered since then onto the students' pages."""
    given = []
    for folder in [out, *options.merge]:  # each mark is for the answer that was graded there
        columns, rows = by_hand.read(folder)
        given.append((columns, by_hand.dated(rows, results.load_all(folder))))
    by_hand.merge(given, out)
    before = results.load_all(out)
    results.merge(options.merge, out)
    merged = results.load_all(out)
    if not merged:
        raise ValueError(f"no results of make grade are in {', '.join(map(str, options.merge))}")
    points = {(r["lesson"], task): row["of"] for r in merged for task, row in r["rows"].items()}
    marks = dated_marks(out, points)
    for result in merged:
        own = marks.get((result["student"], result["lesson"]), {})
        new = by_hand.split(own, {task: by_hand.digest_now(result, task) for task in own})
        if result != result | new:
            notebook = notebooks.read(results.graded_notebook(out, result))
            results.store(out, result | new, notebook)
    finish(out, results.load_all(out), before, marks, {})
    return 0


def dated_marks(out: Path, points: dict[tuple[str, str], float]) -> by_hand.Marks:
    """The marks by hand; it is stored first for which answers they are."""
    by_hand.read_marks(out, points)  # before anything is written, because a mark may be wrong
    by_hand.date(out, results.load_all(out))
    return by_hand.read_marks(out, points)


def finish(
    out: Path,
    graded: list[dict],
    before: list[dict],
    marks: by_hand.Marks,
    people: dict[str, moodle_canvas.Person],
) -> None:
    """Write the tables, and say what they hold, and what is not as it was ``before``.

    ``people`` came by a platform.
    """
    tables.write(out, graded)
    for line in tables.write_changes(out, before, graded):
        print(line)
    by_hand.update(out, graded)
    known = {(r["student"], r["lesson"]): r["rows"] for r in results.load_all(out)}
    for key, tasks in marks.items():
        for task in tasks.keys() - known.get(key, {}).keys():
            name = tables.one_line(", ".join([*key, task]))
            print(f"manual.csv: {name} was not graded: no mark was given")
    for result in graded:
        for task, mark in result.get("outdated", {}).items():
            name = tables.one_line(", ".join([result["student"], result["lesson"], task]))
            print(f"manual.csv: {name}: {tables.out_of_date(mark)}")
    moodle_canvas.write(out, graded, people)
    late = sum(bool(result["late"]) for result in graded)
    print(f"{len(graded)} submissions, {late} late: {out}/grades.csv")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m grading", allow_abbrev=False)
    add = parser.add_argument
    add("folder", nargs="?", default="", help="holds a folder for each student, named by their id")
    add("--out", type=Path, default=Path("grades"), help="where the tables and pages go")
    add("--lesson", action="append", default=[], help="only this one, such as 03")
    add("--due", help="later is late: 2026-12-01, or '2026-12-01 18:00 Europe/Berlin'")
    add("--late-penalty", type=float, default=0, help="percent of the points per day that begins")
    add("--timestamps", action="store_true", help="timestamp.txt is yours: believe it")
    add("--closed", action="store_true", help="nobody hands in any more: pages show right letters")
    add("--roster", type=Path, help="a CSV file whose first column has the ids of the class")
    add("--student", action="append", default=[], help="grade this one again, and nobody else")
    add(
        "--names",
        type=Path,
        help="a CSV file: the name of a folder, or on Moodle or Canvas, and the id",
    )
    add("--shard", default="1/1", help="k/n: the k-th of n parts of the class")
    add("--merge", nargs="+", type=Path, help="the --out folders of shards")
    add("--no-sandbox", action="store_true", help="only for code that you trust")
    add("--jobs", type=int, default=os.cpu_count(), help="submissions at the same time")
    add("--cell-seconds", type=float, default=60, help="a cell's limit")
    add("--seconds", type=float, default=300, help="a submission's limit")
    add("--memory", type=float, default=4, help="a submission's limit, in GB")
    add("--see", action="append", default=[], help="one more folder that kernels may read")
    add("--sets", type=Path, default=exercise_sets.SOLUTIONS, help="where the sets are")
    options = parser.parse_args(arguments)
    for folder in options.merge or [options.folder]:
        if not (folder and Path(folder).is_dir()):
            came = folder or "nothing"
            parser.error(f"expected a folder of submissions or of a shard, but got {came}")
    options.folder = Path(options.folder)
    return options


def shard(text: str) -> tuple[int, int]:
    number, _, shards = text.partition("/")
    if not (number.isdecimal() and shards.isdecimal() and 1 <= int(number) <= int(shards)):
        raise ValueError(f"--shard: expected k/n, such as 1/4, but got {text}")
    return int(number), int(shards)


def sets_in(options: argparse.Namespace) -> dict[Path, list[str]]:
    """The sets to grade; of each, the longer names of sets that begin with its name."""
    paths = options.sets.resolve().glob("*/*.ipynb")
    names = {path.stem: path for path in sorted(paths) if path.stem == path.parent.name}
    if not names:
        raise ValueError(
            f"{options.sets} has no set to grade with: grade in the course itself, because a copy "
            "that was handed out to students has no solutions"
        )
    known = {*names, *(name.partition("_")[0] for name in names)}
    if unknown := set(options.lesson) - known:
        raise ValueError(f"--lesson must be a set or its number, such as 03, but got {unknown}")
    return {
        path: [other for other in names if other.startswith(name) and other != name]
        for name, path in names.items()
        if not options.lesson or {name, name.partition("_")[0]} & set(options.lesson)
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
