"""What PyTorch's compiler reports in its log: the programs that it makes, and failed guards.

The logs are those of a program that was run with ``TORCH_LOGS=output_code`` or with
``TORCH_LOGS=recompiles``, as PyTorch 2.13 to 2.15 write them.
"""

import re
import textwrap

_PREFIX = re.compile(r"^[VIW]\d{4} \S+ \d+ \S+\] (?:\[\S*\] )*?\[__(\w+)\] ?", re.M)
_CALL = re.compile(r"^ +((?:extern_kernels\.|cpp_fused_)\w+)\(", re.M)
_CAST = re.compile(r"static_cast<\w+>\((-?[\w.]+?)L?\)")


def programs(log: str) -> list[str]:
    """The source of each program that the log holds, one for each graph, without its prefixes."""
    code = "\n".join(
        line[found.end() :]
        for line in log.splitlines()
        if (found := _PREFIX.match(line)) and found[1] == "output_code"
    )
    return [part for part in code.split("Output code: ") if "async_compile" in part]


def calls(program: str) -> list[str]:
    """The generated kernels and the functions of libraries that a program calls, in order."""
    return _CALL.findall(program)


def loop(program: str, kernel: str) -> str:
    """The innermost loop body of a generated ``kernel``, in C++, without casts of numbers.

    Raises a ValueError if the program has no such kernel, or the kernel no store.
    """
    _, _, source = program.partition(f"{kernel} = async_compile.cpp_pybinding(")
    lines = source.partition("''')")[0].splitlines()
    stores = [number for number, line in enumerate(lines) if ".store(" in line]
    if not stores:
        raise ValueError(f"the program holds no kernel {kernel!r} that stores a value")
    first = next(number for number, line in enumerate(lines) if "loadu(" in line)
    body = textwrap.dedent("\n".join(lines[first : stores[-1] + 1]))
    return _CAST.sub(r"\1", body)


def failed_guards(log: str) -> list[str]:
    """The conditions whose failure made PyTorch compile again, each once, in order."""
    found = re.findall(r"\[__recompiles\]\s+- \d+/\d+: (.+?)\s+#", log)
    return list(dict.fromkeys(found))


def line_of(error: Exception) -> str:
    """The line at which ``fullgraph=True`` ended, from its error: "function, line 3: code".

    Raises a ValueError if the error names no line of a program.
    """
    places = re.findall(r'File "[^"]+", line (\d+), in (\w+)\n +(.+)', str(error))
    if not places:
        raise ValueError(f"the error names no line of a program: {error}")
    number, function, code = places[-1]
    return f"{function}, line {number}: {code}"
