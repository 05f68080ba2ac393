"""Students' ids: equal however they were typed, and safe as the names of folders."""

import hashlib
import os
import re
import unicodedata

LONGEST = 100  # characters of an id that a student or a list of the class gives
LONGEST_NAME = 200  # bytes of a folder's name; Linux allows 255
NOT_A_STUDENT = (".ipynb_checkpoints", ".git", ".DS_Store", "__MACOSX")
WRITTEN_ID = re.compile(r"""^student *= *(["'])(.*?)\1""", re.M)
MADE_SAFE = re.compile(r".*~[0-9a-f]{12}", re.S)  # as safe_name makes them


def composed(text: str) -> str:
    """A text in NFC, as a keyboard gives it.

    macOS may store the name of a folder in NFD, where é is an e and an accent.
    """
    return unicodedata.normalize("NFC", text)


def normal(text: str) -> str:
    """An id as it was meant: in NFC, without blanks around it."""
    return composed(text).strip()


def written_in(source: str) -> str:
    """The id that a notebook's first code cell gives, or ""."""
    found = WRITTEN_ID.findall(source)
    return normal(found[-1][1]) if found else ""


def problem(student: str) -> str:
    """Why a text cannot be a student's id, as the end of a sentence; "" if it can be one."""
    if not student:
        return "no clear id"
    if len(student) > LONGEST:
        return f"an id of {len(student)} characters, of at most {LONGEST}"
    if not student.isprintable():
        return f"the id {shown(student)}, which cannot be printed"
    return ""


def shown(student: str) -> str:
    """An id in quotes, not too long for a sentence."""
    return repr(student if len(student) <= LONGEST else f"{student[:40]}…")


def printable(name: str) -> str:
    """The id that a folder's name gives; one that cannot be printed is escaped and made unique."""
    name = composed(name)
    if name.isprintable():
        return name
    return f"{ascii(name)[1:-1][:100]}~{hash_of(name)[:8]}"


def safe_name(student: str) -> str:
    """The name of a student's folders in what is written: the id, unless no folder can have it."""
    reserved = (".", "..", *NOT_A_STUDENT)
    if (
        student.isprintable()
        and "/" not in student
        and student not in reserved
        and len(student.encode()) <= LONGEST_NAME
        and not MADE_SAFE.fullmatch(student)  # nobody gets the name that was made for another
    ):
        return student
    readable = re.sub(r"[^\w-]+", "_", student, flags=re.A)[:40]
    return f"{readable}~{hash_of(student)[:12]}"


def hash_of(name: str) -> str:
    return hashlib.sha256(os.fsencode(name)).hexdigest()
