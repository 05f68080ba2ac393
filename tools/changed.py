"""``make test-changed``: run the tests and the notebooks that a change reaches.

    python -m tools.changed [SINCE]      what differs from a commit, such as main; else from HEAD

A change reaches the files that import a changed one or write its name, as they do with scripts,
recordings and pages, and the files that import or name those. Of a package such as
``helpers.plotting``, a notebook uses the modules whose names it writes. A test also uses all of a
folder that it names. What changes how every test runs reaches all of them.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from IPython.core.inputtransformer2 import TransformerManager

from tools import notebooks

ROOT = notebooks.ROOT
FOR_ALL = {"conftest.py", "pyproject.toml", "requirements.txt", "constraints.txt"}
FOR_ALL |= {"tools/notebooks.py", "tools/nbval_sanitize.cfg"}
CODE = {".py", ".ipynb"}
USERS = CODE | {".js", ".j2", ".html"}  # of other files; a page that names one is no user
COPIED = {"assets", "helpers", "notebooks", "tools"}  # tests copy these to have a course
PACKAGES = r"\b(?:helpers|tools|grading|tests|scripts)(?:\.\w+)+"


def main(words: list[str]) -> int:
    since = words[0] if words else "HEAD"
    try:
        changed = {*git("diff", "--name-only", "--relative", since), *new_files()}
    except subprocess.CalledProcessError as error:
        print(f"git cannot compare with {since!r}: {error.stderr.strip()}")
        return 2
    if not changed:
        print(f"Nothing differs from {since}: name an older commit, as in SINCE=HEAD~1")
        return 0
    if for_all := sorted(changed & FOR_ALL):
        print(f"{', '.join(for_all)}: every test and every notebook is reached")
        return run_pytest(["notebooks", "tests"])
    try:
        why = reached(changed)
    except SyntaxError as error:
        print(f"{error.filename}, line {error.lineno}: {error.msg}")
        return 2
    tests = [name for name in sorted(why) if is_test(name) and (ROOT / name).exists()]
    for name in tests:
        print(" ← ".join([name, *path_to_change(name, why)]), flush=True)
    if not tests:
        print(f"No test and no notebook names or imports {', '.join(sorted(changed))}: make test")
        return 0
    return run_pytest(tests)


def run_pytest(tests: list[str]) -> int:
    line = ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", *tests]
    return subprocess.run([sys.executable, "-m", "pytest", *line], cwd=ROOT, check=False).returncode


def reached(changed: set[str]) -> dict[str, str]:
    """Each file that the change reaches, to the one that it uses, or "" if itself was changed."""
    files = sorted({*git("ls-files"), *new_files(), *changed})
    users = {name: used_by(name, files) for name in files if Path(name).suffix in USERS}
    why, waiting = dict.fromkeys(sorted(changed), ""), sorted(changed)
    while waiting:
        used = waiting.pop(0)
        if used.endswith(".ipynb") and used not in changed:
            continue  # it is to be executed, but its file, which tests read, stays
        for name, uses in users.items():
            if used in uses and name not in why:
                why[name] = used
                waiting.append(name)
    return why


def path_to_change(name: str, why: dict[str, str]) -> Iterator[str]:
    """The files from what a test uses to what was changed."""
    while name := why[name]:
        yield name


def is_test(name: str) -> bool:
    path = ROOT / name
    return path in notebooks.all_of_them() or bool(re.fullmatch(r"test_\w+\.py", path.name))


def used_by(name: str, files: list[str]) -> set[str]:
    """The files that this one imports or names; a package's own file only collects names."""
    if Path(name).name == "__init__.py":
        return set()
    text = source(name)
    words = set(re.findall(r"\w+", text))
    file_names = set(re.findall(r"[\w.-]+\.\w+", text))
    used = {file for file in files if Path(file).name in file_names}
    used |= {
        file for file in files if is_recording(file) and Path(file).name.split(".")[0] in words
    }
    if Path(name).suffix in CODE:
        used |= imported(text, all_modules=name.startswith("tests/")) & set(files)
    if name.startswith("tests/") and name.endswith(".py"):
        folders = {*re.findall(r"'([\w/]+)'", text), *re.findall(r"\w+(?:/\w+)+", text)} - COPIED
        used |= {file for file in files if set(ends_of(Path(file).parent)) & folders}
        if re.search(r"\ball_of_them\b|\bNOTEBOOKS\.r?glob\b", text):
            used |= {str(path.relative_to(ROOT)) for path in notebooks.all_of_them()}
    else:
        used = {file for file in used if not file.endswith(".ipynb")}  # it only mentions one
    return used - {name}


def ends_of(folder: Path) -> Iterator[str]:
    """The names of a folder: tools/site is also called site."""
    if folder.parts[:1] != ("tests",):
        yield from ("/".join(folder.parts[start:]) for start in range(len(folder.parts)))


def is_recording(file: str) -> bool:
    return file.startswith("assets/recordings/") and not file.endswith(".py")


def source(name: str) -> str:
    """A file's text: of Python without comments, of a notebook its cells as Python."""
    path = ROOT / name
    if not path.exists():
        return ""
    if path.suffix == ".ipynb":
        cells = [cell for cell in notebooks.read(path).cells if cell.cell_type == "code"]
        return "\n".join(TransformerManager().transform_cell(cell.source) for cell in cells)
    text = path.read_text(encoding="utf-8")
    return ast.unparse(ast.parse(text, name)) if path.suffix == ".py" else text


def imported(text: str, all_modules: bool) -> set[str]:
    """The course's files behind the modules that a program imports, or names in full."""
    modules = set(re.findall(PACKAGES, text))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {file for module in modules for file in files_of(module, text, all_modules)}


def files_of(module: str, text: str, all_modules: bool) -> Iterator[str]:
    """The file of a module, or those of a package's modules: all, or whose names are written."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        path = Path(*parts[:length])
        if parts[0] == "scripts":
            path = Path("notebooks") / path
        if (ROOT / path).with_suffix(".py").exists():
            yield f"{path.as_posix()}.py"
            return
        if (ROOT / path / "__init__.py").exists():
            yield f"{path.as_posix()}/__init__.py"
            for node in ast.parse(source(f"{path.as_posix()}/__init__.py")).body:
                if isinstance(node, ast.ImportFrom) and node.module.startswith(parts[0]):
                    names = {alias.name for alias in node.names}
                    if all_modules or names & {
                        *parts[length:],
                        *re.findall(rf"\b{parts[length - 1]}\.(\w+)", text),
                    }:
                        yield f"{node.module.replace('.', '/')}.py"
            return


def new_files() -> list[str]:
    return git("ls-files", "--others", "--exclude-standard")


def git(*words: str) -> list[str]:
    """The lines that git prints, of files below the course's folder."""
    line = ["git", "-c", "core.quotePath=false", *words]
    done = subprocess.run(line, cwd=ROOT, check=True, capture_output=True, encoding="utf-8")
    return done.stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
