"""nbgrader here: ``nbgrader generate_assignment --force 03_macs_and_flops``, then ``autograde``.

``make refresh`` and ``make grade`` read the same settings.
"""

from nbconvert.preprocessors import TagRemovePreprocessor
from nbformat import NotebookNode
from nbgrader.converters import GenerateAssignment
from nbgrader.preprocessors import ClearSolutions, LockCells, NbGraderPreprocessor

c = get_config()  # noqa: F821  (nbgrader puts it there)

c.CourseDirectory.course_id = "measure-pytorch"
c.CourseDirectory.source_directory = "notebooks/solutions"
c.CourseDirectory.release_directory = "notebooks/exercises"
c.CourseDirectory.db_url = "sqlite:///gradebook.db"

c.ClearSolutions.code_stub = {"python": "...  # your answer"}
c.ClearSolutions.text_stub = "*Your answer*"

# The wrong answers that the checks are tested with stay here; then nbgrader's own steps, without
# the two that come before LockCells: they add a header, and tests that nbgrader writes.
c.TagRemovePreprocessor.enabled = True
c.TagRemovePreprocessor.remove_cell_tags = {"wrong"}
steps = GenerateAssignment.preprocessors.default()
steps = [TagRemovePreprocessor, *steps[steps.index(LockCells) :]]


class LeaveOneId(NbGraderPreprocessor):
    """The id's cell has one place to fill in: the empty id, without "your answer" below it."""

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict, index: int
    ) -> tuple[NotebookNode, dict]:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "student":
            cell.source = cell.source.removesuffix("\n" + c.ClearSolutions.code_stub["python"])
        return cell, resources


steps.insert(steps.index(ClearSolutions) + 1, LeaveOneId)
c.GenerateAssignment.preprocessors = steps

c.ExecutePreprocessor.timeout = 120
c.OverwriteCells.add_missing_cells = True  # a check that was deleted counts as failed
# nbgrader gives nothing for a check that writes to stderr, as torch's profiler does: what C code
# writes there goes past the notebook.
c.ExecutePreprocessor.extra_arguments = ["--IPKernelApp.capture_fd_output=False"]
