"""A tool's file as data: a data frame, the spans of ``plotting.timeline``, or the stacks of
``plotting.icicle``. Each function reads one kind of file and says what its rows and columns are.
"""

import shlex


def nsys_command(line: str) -> tuple[list[str], list[str]]:
    """The flags that ``nsys profile …`` gets, each with its value, and the words from the program
    on. The first word that is no flag *is* the program; everything behind it is the program's.

    >>> nsys_command("nsys profile -t nvtx --stats=true python train.py -f true")
    (['-t nvtx', '--stats=true'], ['python', 'train.py', '-f', 'true'])
    """
    words = shlex.split(line)
    if "profile" not in words:
        raise ValueError(f"line must hold the word profile, as in nsys profile …, not {line!r}")
    words, flags = words[words.index("profile") + 1 :], []
    while words and words[0].startswith("-"):
        flag = words.pop(0)
        flags.append(flag if "=" in flag or not words else f"{flag} {words.pop(0)}")
    return flags, words
