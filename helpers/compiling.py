"""What the exercises on the compiler use: drawn programs, and runs whose graphs are counted.

Nothing here needs Inductor or a C++ compiler: the backend runs each graph as it is.
"""

import io
import random
from collections.abc import Sequence
from contextlib import redirect_stdout

import torch
from torch import Tensor, fx, nn

# Statements that break the graph of a function with a tensor x, or do not. A bar ends a line.
OUTSIDE = [
    'print("rows:", len(x))',
    "started = time.perf_counter()",
    'log.info("half way")',
    "process = os.getpid()",
    "time.sleep(0.001)",
    "sys.stdout.flush()",
]
VALUE = [
    "largest = x.abs().max().item()|x = x / (1 + largest)",
    "if x.mean() > 0.1:|    x = x - 0.1",
    "x = x[x.isfinite().all(dim=1)]",
    "total = float(x.sum())|x = x + total",
    "column = int(x.sum(dim=0).argmax())|x = x - x[:, column, None]",
    "places = torch.nonzero(x)|x = x + len(places)",
    "sums = x.sum(dim=1).tolist()|x = x * len(sums)",
]
HARMLESS = [
    "if x.shape[0] > 3:|    x = x * 2",
    "for step in range(3):|    x = x + step",
    "x = torch.where(x > 0.5, x, 0.5)",
    "parts = []|parts.append(x.mean())|x = x + parts[-1]",
    "assert x.ndim == 2|x = x * 1.5",
    "sine = np.sin(x.numpy())|x = x + torch.from_numpy(sine)",
    "with torch.no_grad():|    x = x.relu()",
    "x = x.sort(dim=1).values",
    'label = f"{x.shape[0]} rows"|x = x + len(label)',
    "x = x / x.abs().max()",
    "x = x.masked_fill(x < 0, 0.0)",
    "rows, columns = x.shape|x = x + rows * columns",
]

# Bodies of a function f(x) that is compiled and called once, with torch.ones(4).
LOOP = "for n in range(3):|    x = x + n|"
IN_A_LOOP = [
    LOOP + '    print("now")|return x - 3',
    LOOP + "    total = x.sum().item()|return x - 3",
    LOOP + "    if x.sum() > 5:|        x = x - 1|return x - 3",
]
PLACES = [
    'print("now")|x = x + 1|x = x * 2|return x - 3',
    'x = x + 1|x = x * 2|print("now")|return x',
    'x = x + 1|print("now")|print("now")|return x - 3',
    'x = x + 1|print("now")|x = x * 2|print("now")|return x - 3',
    'print("now")|x = x + 1|print("now")|return x - 3',
]
VALUES = [
    "x = x + 1|total = x.sum().item()|return x * total",
    "x = x + 1|if x.sum() > 3:|    x = x * 2|return x - 3",
    "x = x + 1|x = x[x > 0]|return x - 3",
    "x = x + 1|total = float(x.sum())|x = x * 2|return x - total",
]
WHOLE = [
    LOOP + "return x - 3",
    "x = x + 1|x = torch.where(x > 3, x, 3.0)|return x - 3",
    "x = x + 1|if x.shape[0] > 3:|    x = x * 2|return x - 3",
    "both = [x + 1]|both.append(x * 2)|return sum(both) - 3",
]

# Programs with several calls: parameters, what f returns, an option, values of n, arguments.
FUNCTION = """def f({0}):
    return {1}
f = torch.compile(f, backend=backend{2})
for n in {3}:
    f({4})"""
NEW_EACH = [
    ("x, n", "sum([x + k for k in range(n)])", "", "{numbers}", "torch.ones(4), n"),
    ("x", "sum(x)", "", "{numbers}", "[torch.ones(4)] * n"),
    ("x", "x * 2", "", "{numbers}", "torch.ones([2] * n)"),
    ("x, n", 'x + 1 if n == "a" else x * 2', "", "{letters}", "torch.ones(4), n"),
    ("x", "x * 2", ", dynamic=False", "{numbers}", "torch.ones(n)"),
]
DYNAMIC = [
    ("x", "x * 2", "", "{numbers}", "torch.ones(n)"),
    ("x, n", "x * n", "", "{numbers}", "torch.ones(4), n"),
    ("x", "x * 2", "", "{numbers} + [1]", "torch.ones(n)"),
    ("x", "x * 2", "", "{numbers} * 2", "torch.ones(4, n)"),
]
SAME = [
    ("x", "x * 2", "", "{numbers}", "torch.ones(8) * n"),
    ("x, n", "x * 2", "", "{letters}", "torch.ones(4), n"),
    ("x", "x * 2", ", dynamic=True", "{numbers}", "torch.ones(n)"),
    ("x", "x + 1 if len(x) > 3 else x * 2", "", "range({calls})", "torch.ones(8)"),
]
COUNTING = """class Model(torch.nn.Module):
    steps = 0
    def forward(self, x):
        self.steps += 1
        return x * self.steps
f = torch.compile(Model(), backend=backend)
for n in range({calls}):
    f(torch.ones(4))"""

WARM_UP = '''class WarmUp(nn.Module):
    """Its outputs are smaller during the first ``warm_up`` training steps."""

    def __init__(self, warm_up):
        super().__init__()
        self.linear, self.warm_up = nn.Linear(4, 4), warm_up
        self.start()

    def start(self):
        self.steps = 0

    def forward(self, x):
        if self.training:
            self.steps += 1
        return self.linear(x) * min(1.0, self.steps / self.warm_up)
'''


class Counter:
    """A backend of ``torch.compile`` that counts the graphs and runs them as they are."""

    def __init__(self) -> None:
        self.graphs = 0

    def __call__(self, graph: fx.GraphModule, inputs: Sequence[Tensor]) -> object:
        self.graphs += 1
        return graph.forward


def broken_program(rng: random.Random) -> str:
    """The text of a function ``f(x)`` with three graph breaks.

    Each of the four graphs has at least one operator, because ``torch._dynamo.explain`` does not
    report a break before any other.
    """
    return _broken(rng)[0]


def breaks_of_program(rng: random.Random) -> list[list]:
    """The [line, reason] of each break in the ``broken_program`` of the same random numbers.

    A line is counted from 1, and a reason is "value" or "outside".
    """
    return _broken(rng)[1]


def _broken(rng: random.Random) -> tuple[str, list[list]]:
    number = rng.choice([1, 2])
    breaks = [(statement, "outside") for statement in rng.sample(OUTSIDE, number)]
    breaks += [(statement, "value") for statement in rng.sample(VALUE, 3 - number)]
    rng.shuffle(breaks)
    lines, pairs = ["def f(x):"], []
    for place, harmless in enumerate(rng.sample(HARMLESS, 4)):
        lines += harmless.split("|")
        for statement, reason in breaks[place : place + 1]:
            pairs.append([len(lines) + 1, reason])
            lines += statement.split("|")
    return "\n    ".join([*lines, "return x"]), pairs


def eight_programs(rng: random.Random) -> dict[str, str]:
    """The texts of the programs A to D, about breaks, and E to H, about recompilations.

    A program needs the names ``torch`` and ``backend``.
    """
    texts = []
    for kind in (IN_A_LOOP, PLACES, VALUES, WHOLE):
        lines = ["def f(x):", *rng.choice(kind).split("|")]
        call = "torch.compile(f, backend=backend)(torch.ones(4))"
        texts.append("\n    ".join(lines) + f"\n{call}")
    kinds = NEW_EACH, DYNAMIC, SAME
    for text in [*(FUNCTION.format(*rng.choice(kind)) for kind in kinds), COUNTING]:
        calls = rng.choice([3, 4, 5, 6, 20 if text == COUNTING else 4])
        numbers, letters = rng.sample(range(2, 9), calls % 7), list("abcdef"[:calls])
        text = text.replace("{numbers}", str(numbers)).replace("{letters}", str(letters))
        texts.append(text.replace("{calls}", str(calls)))
    order = [*rng.sample(texts[:4], 4), *rng.sample(texts[4:], 4)]
    return dict(zip("ABCDEFGH", order, strict=True))


def count_graphs(program: str) -> int:
    """How many graphs a program compiles, as ``eight_programs`` gives them; it prints nothing."""
    backend = Counter()
    torch.compiler.reset()
    with redirect_stdout(io.StringIO()):
        exec(program, {"torch": torch, "backend": backend, "__name__": "__main__"})
    return backend.graphs


def compiled_calls(text: str, name: str, calls: Sequence[Sequence], compiling: bool = True) -> list:
    """Compile the function ``name`` of ``text`` with fullgraph=True, and call it.

    ``calls`` holds the arguments of each call, and each result is a list. What is returned is the
    results, the number of graphs, and errors, each a sentence; after one, there are no results.
    Without ``compiling``, the function runs eagerly.
    """
    names, backend, results, errors = {"torch": torch}, Counter(), [], []

    def program(*arguments: object) -> object:  # so that a function that is not compiled is found
        return names[name](*arguments)

    torch.compiler.reset()
    compiled = torch.compile(program, backend=backend, fullgraph=True, disable=not compiling)
    try:
        exec(text, names)
        program(*map(_copied, calls[0]))  # an error in it has to appear as it is
        for arguments in calls:
            given = [*map(_copied, arguments)]
            results.append(list(compiled(*given)))
            tensors = [each for each in arguments if torch.is_tensor(each)]
            left = [each for each in given if torch.is_tensor(each)]
            if not all(map(torch.equal, tensors, left)):
                raise ValueError(f"{name} has changed its argument")
    except Exception as error:
        results, errors = [], [sentence(error)]
    return [results, backend.graphs, errors]


def _copied(argument: object) -> object:
    return argument.clone() if torch.is_tensor(argument) else argument


def trained(methods: str, warm_up: int, modes: Sequence[str], compiling: bool = True) -> dict:
    """Call the model of ``WARM_UP`` once for each of the ``modes``, "train" or "eval".

    ``methods`` is the text of functions that replace those of the model, or "". The dictionary has
    "outputs", the number of "graphs", a list of "errors", and [steps, steps after resuming].
    """
    names, backend, outputs, errors = {"torch": torch, "nn": nn}, Counter(), [], []
    torch.compiler.reset()
    torch.manual_seed(len(modes))
    try:
        exec(WARM_UP, names)
        replaced = dict(names)
        exec(methods, replaced)
        new = {name: replaced[name] for name in ("start", "forward") if name in replaced}
        kind = type("Model", (names["WarmUp"],), new)
        model, resumed = kind(warm_up), kind(warm_up)
        compiled = torch.compile(model, backend=backend, disable=not compiling)
        for mode in modes:
            model.train(mode == "train")
            output = compiled(torch.rand(2, 4))
            outputs.append(output + torch.zeros(2, 4))  # an error if it is no tensor
        resumed.load_state_dict(model.state_dict())
        steps = [int(model.steps), int(resumed.steps)]
    except Exception as error:
        errors.append(sentence(error))
        outputs, steps = [torch.zeros(2, 4)] * len(modes), [-1, -1]
    result = {"outputs": torch.stack(outputs), "steps": steps}
    return result | {"graphs": backend.graphs, "errors": errors}


def sentence(error: Exception) -> str:
    """The first line of an error, after its kind."""
    return f"{type(error).__name__}: {error}".split("\n")[0]
