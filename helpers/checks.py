"""``claim``: a sentence of the text, confirmed by what was just measured."""

import html
import math
from numbers import Integral, Real
from pathlib import Path

from IPython import get_ipython
from IPython.display import display

from helpers import units

# What tools/lab.py leaves beside the lessons of a reader's own copy.
LEDGER = ".course.json"

# JupyterLab removes <style> from the output of a notebook that it does not trust, and keeps these.
# The text has the theme's colour; what is transparent is legible on a light and on a dark page.
_LINE = (
    "border-left: 3px solid {colour}; background-color: {colour}22; padding: 2px 10px; "
    "overflow-wrap: break-word"
)
_EVIDENCE = "font-size: 87%; opacity: 0.75"
_COLOURS = {"claim-holds": "#2da44e", "claim-amber": "#d29922"}


class ClaimError(AssertionError):
    """The measurement did not bear out the claim."""


def claim(text: str, holds: bool, *, exact: bool = False, **measured: object) -> None:
    """Display ``text`` with what was measured if it ``holds``, or raise ``ClaimError``.

    ``measured`` names the values that the claim rests on, at least one. A float is a measurement
    and is shown with the ``~`` mark, also within a list, a tuple or a dictionary; an integer has
    thousands separators, and a string is shown as it is. In a reader's own copy of the course a
    claim on a measurement, which is one whose evidence holds a ``~``, is displayed in amber when it
    fails, and the notebook goes on: another computer may differ. A claim on exact values always
    raises when it fails, and so does one that is said to be ``exact``: where two results differ,
    the difference is a float, but the computer is not to blame.

    >>> claim("im2col beats the loops by 10x", 152.0 > 10, ratio=152.0)
    ✓ im2col beats the loops by 10x  (ratio = ~152)
    """
    if not measured:
        raise TypeError(f"claim {text!r} must show what it rests on, such as ratio=a / b")
    if type(holds).__name__ != "bool":  # numpy's own is welcome
        raise TypeError(f"holds must be True or False, but got a {type(holds).__name__}")
    evidence = ", ".join(f"{key} = {_shown(value)}" for key, value in measured.items())
    failed = f"not confirmed on this run: {text}"
    if not holds and (exact or "~" not in evidence or not Path(LEDGER).exists()):
        raise ClaimError(f"{failed}  ({evidence})")
    line = rendered(text, evidence) if holds else rendered(failed, evidence, confirmed=False)
    if get_ipython() is None:
        print(line["text/plain"])
    else:
        display(line, raw=True)


def rendered(text: str, evidence: str, *, confirmed: bool = True) -> dict[str, str]:
    """One line in each format that Jupyter may show, green if ``confirmed``, else amber."""
    mark, kind = ("✓", "claim-holds") if confirmed else ("△", "claim-amber")
    colours = _LINE.format(colour=_COLOURS[kind])
    sentence, values = (html.escape(part, quote=False) for part in (text, evidence))
    values = f'<span class="claim-evidence" style="{_EVIDENCE}">({values})</span>'
    line = f'<div class="claim {kind}" style="{colours}">{mark} {sentence}  {values}</div>'
    return {"text/plain": f"{mark} {text}  ({evidence})", "text/html": line}


def _shown(value: object, *, within: bool = False) -> str:
    """A value with its mark if it was measured; ``within`` another one without separators."""
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_shown(item, within=True)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        items = ", ".join(_shown(item, within=True) for item in value)
        return items if isinstance(value, list) else f"({items})"
    if isinstance(value, Real) and not isinstance(value, Integral):
        return units.number(float(value)) if math.isfinite(value) else f"~{float(value)}"
    if isinstance(value, Integral) and not isinstance(value, bool) and not within:
        return f"{int(value):,}"
    return str(value)
