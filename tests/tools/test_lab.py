"""The reader's own copy: nothing spoiled, nothing lost, and no stop at another measurement."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from helpers.checks import LEDGER
from tools import lab, notebooks, refresh


@pytest.fixture
def work(tmp_path: Path) -> Path:
    assert list(lab.hand_out(tmp_path / "work")) == []
    return tmp_path / "work"


def lessons(folder: Path) -> dict[str, NotebookNode]:
    return {path.name: notebooks.read(path) for path in folder.glob("*.ipynb")}


def test_a_copy_has_every_lesson_and_what_it_starts_and_no_output(work: Path) -> None:
    assert set(lessons(work)) == {path.name for path in notebooks.NOTEBOOKS.glob("*.ipynb")}
    assert (work / "scripts" / "train_small_cnn.py").exists()
    assert not list(work.rglob("solutions"))
    for lesson in lessons(work).values():
        code = [cell for cell in lesson.cells if cell.cell_type == "code"]
        assert all(cell.outputs == [] and cell.execution_count is None for cell in code)


def test_what_answers_a_prediction_is_folded_and_nothing_is_lost(work: Path) -> None:
    for name, copy in lessons(work).items():
        original = notebooks.read(notebooks.NOTEBOOKS / name).cells
        assert [cell.id for cell in copy.cells] == [cell.id for cell in original]
        for cell, source in zip(copy.cells, (c.source for c in original), strict=True):
            if source.startswith("**Read.**"):
                assert cell.source.startswith("<details><summary>Read</summary>\n\n")
            answer, _, question = source.partition("**Predict.**")
            assert cell.source.endswith(question)
            assert source == cell.source or not answer.startswith("## "), cell.id
            assert set(re.findall(r"\w+", source)) - {"Read"} <= set(
                re.findall(r"\w+", cell.source)
            )


def test_an_instructor_sees_the_notes(tmp_path: Path) -> None:
    list(lab.hand_out(tmp_path, teach=True))
    notes = [
        c.source for c in lessons(tmp_path)["01_timing.ipynb"].cells if "Instructor" in c.source
    ]
    assert len(notes) > 3
    assert all(source.startswith("<details open><summary>Instructor notes") for source in notes)


def test_no_fold_hides_a_heading(work: Path) -> None:
    folds = 0
    for name, lesson in lessons(work).items():
        for cell in lesson.cells:
            if cell.cell_type == "markdown" and not cell.source.startswith(lab.NOTES):
                for fold in re.findall(r"<details>.*?</details>", cell.source, flags=re.S):
                    code_left_out = re.sub(r"^```.*?^```", "", fold, flags=re.M | re.S)
                    assert not re.search("^#+ ", code_left_out, flags=re.M), (name, cell.id)
                    folds += 1
    assert folds > 100


def copied(**cells: str) -> list[str]:
    """The Markdown of the student's copy of a lesson with these cells."""
    made = [
        new_code_cell(source) if id_.endswith("measure") else new_markdown_cell(source)
        for id_, source in cells.items()
    ]
    for cell, id_ in zip(made, cells, strict=True):
        cell.id = id_.replace("_", "-")
    copy = lab.readers(new_notebook(cells=made), teach=False)
    return [cell.source for cell in copy.cells if cell.cell_type == "markdown"]


FOLD = "<details><summary>Read</summary>\n\n{}\n\n</details>"


def test_an_answer_is_folded_and_what_leads_on_is_not() -> None:
    asked = {"ask": "## One\n\n**Predict.** (a) or (b)?", "measure": "1 + 1"}
    for id_, answer in {"x_read": "Two.", "x_trap": "Two.", "x_text": "So (b)."}.items():
        assert copied(**asked, **{id_: answer})[1:] == [FOLD.format(answer)]
        assert copied(ask="## One", measure="1 + 1", **{id_: answer})[1:] == [answer]
    assert copied(**asked, name="**Name.** A sum.")[1:] == ["**Name.** A sum."]
    assert copied(**asked, sub="### Two", sub_measure="1", sub_read="Two.")[2:] == ["Two."]


@pytest.mark.parametrize("lead", ["**Trap: three.** Is it?", "Now three:"])
def test_the_last_paragraph_of_an_answer_leads_on(lead: str) -> None:
    read, seen = f"**Read.** Two.\n\n{lead}", FOLD.format("Two.") + f"\n\n{lead}"
    assert copied(x_read=read, measure="3") == [seen]
    asked = "\n\n**Predict.** (a) or (b)?"
    assert copied(x_read=read + asked) == [seen + asked]
    assert copied(x_read=read, limits="## End")[0] == FOLD.format(f"Two.\n\n{lead}")
    assert copied(x_read="**Read.** Only this:", measure="3") == [FOLD.format("Only this:")]


@pytest.mark.parametrize(
    ("source", "line", "rest"),
    [
        ("**Trap: one.** Two.", "Trap: one", "Two."),
        ("**One or all?** Two.", "One or all?", "Two."),
        ("**Trap: no `a < b`.** Two.", "Trap: no <code>a &lt; b</code>", "Two."),
        ("**Memray** finds **it.** Two.", "Read", "**Memray** finds **it.** Two."),
        ("Two.", "Read", "Two."),
    ],
)
def test_a_bold_sentence_becomes_the_line_to_click_on(source: str, line: str, rest: str) -> None:
    assert lab.folded(source) == f"<details><summary>{line}</summary>\n\n{rest}\n\n</details>"


def test_a_later_call_touches_nothing_that_the_reader_changed(work: Path) -> None:
    mine, old, gone = (work / name for name in ("01_timing.ipynb", "02_cprofile.ipynb", "scripts"))
    mine.write_text("mine")
    (gone / "grow_arrays.py").unlink()
    ledger = json.loads((work / LEDGER).read_text())
    old.write_text("as an older course had it")  # and the reader never changed it
    ledger[old.name] = lab.digest(old.read_bytes())
    ledger[mine.name] = lab.digest(b"what an older course had")
    (work / LEDGER).write_text(json.dumps(ledger))
    said = list(lab.hand_out(work))
    assert said == ["01_timing.ipynb is newer in the course; yours stays (--fresh starts it again)"]
    assert mine.read_text() == "mine"
    assert notebooks.read(old).cells
    assert (gone / "grow_arrays.py").exists()


def test_fresh_starts_again_and_keeps_the_old_one(work: Path) -> None:
    mine = work / "04_roofline.ipynb"
    for number in (1, 2):
        mine.write_text(f"mine {number}")
        assert len(list(lab.hand_out(work, fresh="04"))) == 1
        assert (work / f"04_roofline.before-{number}.ipynb").read_text() == f"mine {number}"
        assert notebooks.read(mine).cells
    assert list(lab.hand_out(work)) == []


def test_a_lesson_that_is_not_there_and_a_folder_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(lab.notebooks, "ROOT", tmp_path)
    assert lab.main(["--fresh", "77"]) == 1
    assert "no lesson '77' to start again: give one of 00, 01" in capsys.readouterr().err
    (tmp_path / "teach").write_text("a file where the folder should be")
    assert lab.main(["--teach"]) == 1
    assert "copy the course to a folder of your own" in capsys.readouterr().err


def test_jupyterlab_opens_the_copy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started = []
    monkeypatch.setattr(lab.notebooks, "ROOT", tmp_path)
    monkeypatch.setattr(subprocess, "call", lambda line, cwd, env: started.append((line, env)) or 0)
    assert lab.main(["--no-browser"]) == 0
    words, environment = started[0]
    assert words[1:4] == ["-m", "jupyterlab", "work/00_start_here.ipynb"]
    assert words[4:] == [f"--ServerApp.root_dir={tmp_path}", "--no-browser"]
    assert environment == os.environ
    assert (tmp_path / "work" / "00_start_here.ipynb").exists()


def test_in_front_of_a_class_one_document_is_shown_in_large_type(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started = []
    monkeypatch.setattr(lab.notebooks, "ROOT", tmp_path)
    monkeypatch.setattr(subprocess, "call", lambda line, cwd, env: started.append((line, env)) or 0)
    assert lab.main(["--teach"]) == 0
    words, environment = started[0]
    assert "--LabApp.default_url=/doc/tree/teach/00_start_here.ipynb" in words
    settings = Path(environment["JUPYTERLAB_SETTINGS_DIR"])
    assert settings.is_relative_to(tmp_path / "teach")
    themes = settings / "@jupyterlab" / "apputils-extension" / "themes.jupyterlab-settings"
    assert json.loads(themes.read_text())["overrides"]["code-font-size"] == "20px"
    themes.write_text("{}")  # what the instructor changes stays
    assert lab.main(["--teach"]) == 0
    assert themes.read_text() == "{}"


def test_in_a_copy_a_measurement_that_differs_does_not_stop_run_all(work: Path) -> None:
    cells = [
        "from helpers.checks import claim\nclaim('twice', 1.0 > 2, ratio=1.0, calls=3)",
        "claim('three', 2 == 3, calls=2)",
    ]
    copy = new_notebook(cells=[new_code_cell(source) for source in cells])
    measured, exact = refresh.execute(copy, work, failing=True).cells
    assert (
        "△ not confirmed on this run: twice  (ratio = ~1.00, calls = 3)" in measured.outputs[0].text
    )
    assert exact.outputs[0].ename == "ClaimError"
    elsewhere = refresh.execute(copy, work.parent, failing=True).cells[0]
    assert elsewhere.outputs[0].ename == "ClaimError"
