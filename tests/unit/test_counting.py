"""Each operator's MACs and bytes, also of modules that call autograd, vmap or cond inside."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.flex_attention import flex_attention

from helpers.counting import Operators, tensors

ENDS = torch.arange(8, 33, 8, dtype=torch.int32)  # four groups of eight rows
LSTM = nn.LSTM(32, 64, num_layers=2, bidirectional=True, proj_size=16)
LSTM_WEIGHTS = sum(weight.numel() for weight in LSTM.parameters() if weight.dim() == 2)
NET = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 1))
GROUPED = nn.Conv2d(64, 64, 3, groups=4)


def half(*shape: int) -> Tensor:
    return torch.ones(shape, dtype=torch.bfloat16)


def ones(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.ones(shape, dtype=dtype)


def forces() -> Tensor:
    """As of a potential between atoms: minus the gradient at each place."""
    with torch.enable_grad():
        place = ones(100, 3).requires_grad_()
        return -torch.autograd.grad(NET(place).sum(), place)[0]


def training_step() -> None:
    with torch.enable_grad():
        GROUPED(ones(1, 64, 8, 8).requires_grad_()).sum().backward()


class Squares(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x @ x.T

    @staticmethod
    def setup_context(ctx, inputs: tuple, output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return (gradient + gradient.T) @ x


def while_loop() -> object:
    return torch._higher_order_ops.while_loop(
        lambda step, x: step < 5, lambda step, x: (step + 1, x @ x), (torch.tensor(0), ones(8, 8))
    )


# Outputs times products for each of them, by hand.
CASES = {
    "grouped_mm": (
        lambda: F.grouped_mm(half(32, 64), half(4, 64, 128), offs=ENDS),
        32 * 64 * 128,
    ),
    "grouped_mm of a batch": (
        lambda: F.grouped_mm(half(4, 8, 64), half(4, 64, 128)),
        32 * 64 * 128,
    ),
    "grouped_mm with groups of columns": (
        lambda: F.grouped_mm(half(64, 32), half(32, 128), offs=ENDS),
        64 * 32 * 128,
    ),
    "cdist": (lambda: torch.cdist(ones(256, 64), ones(1024, 64)), 256 * 1024 * 64),
    "cdist of few": (lambda: torch.cdist(ones(3, 64), ones(4, 64)), 3 * 4 * 64),
    "cdist, p = 1": (lambda: torch.cdist(ones(3, 64), ones(4, 64), p=1.0), 0),
    "pdist": (lambda: F.pdist(ones(10, 8)), 45 * 8),
    "matrix @ vector": (lambda: ones(8, 100, 64) @ ones(64), 8 * 100 * 64),
    "addmv": (lambda: torch.addmv(ones(64), ones(64, 32), ones(32)), 64 * 32),
    "dot": (lambda: ones(9) @ ones(9), 9),
    "addbmm": (lambda: torch.addbmm(ones(3, 5), ones(7, 3, 4), ones(7, 4, 5)), 7 * 3 * 4 * 5),
    "in place": (lambda: ones(7, 3, 5).baddbmm_(ones(7, 3, 4), ones(7, 4, 5)), 7 * 3 * 4 * 5),
    "8 bits": (
        lambda: torch._int_mm(ones(32, 64, dtype=torch.int8), ones(64, 16, dtype=torch.int8)),
        32 * 64 * 16,
    ),
    "conv_tbc": (lambda: torch.conv_tbc(ones(10, 2, 6), ones(3, 6, 5), ones(5)), 8 * 2 * 5 * 3 * 6),
    "bilinear": (lambda: F.bilinear(ones(3, 4), ones(3, 6), ones(2, 4, 6)), 3 * 2 * 4 * 6),
    "complex": (
        lambda: torch.einsum(
            "nci,cdi->ndi",
            ones(2, 16, 40, dtype=torch.complex64),
            ones(16, 16, 40, dtype=torch.complex64),
        ),
        4 * 2 * 16 * 16 * 40,
    ),
    "attention of grouped queries": (
        lambda: F.scaled_dot_product_attention(
            ones(1, 4, 16, 8), ones(1, 2, 20, 8), ones(1, 2, 20, 8), enable_gqa=True
        ),
        2 * 4 * 16 * 20 * 8,
    ),
    "flex_attention": (
        lambda: flex_attention(*[ones(2, 4, 128, 16)] * 3),
        2 * 2 * 4 * 128 * 128 * 16,
    ),
    "LSTM of one layer": (lambda: nn.LSTM(32, 64)(ones(10, 2, 32)), 10 * 2 * 4 * 64 * (32 + 64)),
    "LSTM with projections": (lambda: LSTM(ones(10, 2, 32)), 10 * 2 * LSTM_WEIGHTS),
    "forces": (forces, 2 * 100 * (3 * 64 + 64)),
    "grouped convolution, forward and backward": (training_step, 3 * 64 * 6 * 6 * 16 * 9),
    "vmap": (lambda: torch.vmap(lambda x: ones(9, 64) @ x)(ones(5, 64)), 9 * 64 * 5),
    "jacrev": (lambda: torch.func.jacrev(lambda x: ones(9, 4) @ x)(ones(4)), 9 * 4 + 9 * 9 * 4),
    "autograd.Function in vmap": (lambda: torch.vmap(Squares.apply)(ones(5, 8, 6)), 5 * 8 * 8 * 6),
    "autograd.Function in func.grad": (
        lambda: torch.func.grad(lambda x: Squares.apply(x).sum())(ones(8, 6)),
        2 * 8 * 8 * 6,
    ),
    "cond": (
        lambda: torch.cond(
            ones(1).sum() > 0, lambda x: x @ x, lambda x: x @ x @ x @ x, (ones(8, 8),)
        ),
        8**3,
    ),
    "while_loop": (while_loop, 5 * 8**3),
    "nested": (
        lambda: F.linear(
            torch.nested.nested_tensor([ones(3, 64), ones(5, 64)], layout=torch.jagged),
            ones(7, 64),
        ),
        8 * 64 * 7,
    ),
    "no products": (
        lambda: (
            F.layer_norm(ones(4, 8), (8,)),
            F.gelu(ones(4)),
            F.interpolate(ones(1, 3, 8, 8), scale_factor=2, mode="bilinear"),
            torch.linalg.vector_norm(ones(4)),
            F.cross_entropy(ones(4, 8), torch.zeros(4, dtype=torch.int64)),
        ),
        0,
    ),
}


def watched(call) -> Operators:
    with torch.no_grad(), torch.compiler.set_stance("force_eager"), Operators() as operators:
        call()
    return operators


@pytest.mark.filterwarnings("ignore:flex_attention called without", "ignore:.*prototype stage")
@pytest.mark.parametrize("name", CASES)
def test_the_macs_are_those_counted_by_hand(name: str) -> None:
    call, macs = CASES[name]
    operators = watched(call)
    assert (operators.macs, operators.not_counted) == (macs, {})


def test_tensors_of_inference_mode_are_counted_too() -> None:
    with torch.inference_mode():
        x, weight = torch.rand(2, 3, 64), torch.rand(5, 64)
    assert watched(lambda: F.linear(x, weight)).macs == 2 * 3 * 64 * 5


@torch.library.custom_op("test_counting::squares", mutates_args=())
def squares(x: Tensor) -> Tensor:
    return x @ x.T


@pytest.mark.filterwarnings("ignore:.*beta state", "ignore:.*Sparse")
@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: squares(ones(3, 4)), "test_counting.squares"),
        (lambda: torch.sparse.mm(torch.eye(8).to_sparse(), ones(8, 8)), "_sparse_addmm"),
        (lambda: torch.eye(8).to_sparse_csr() @ ones(8, 8), "mm"),
        (lambda: torch.linalg.inv(torch.eye(8)), "linalg_inv_ex"),
        (lambda: torch.fft.rfft2(ones(8, 8)), "_fft_r2c"),
    ],
)
def test_what_may_multiply_but_has_no_formula_is_named(call, name: str) -> None:
    operators = watched(lambda: (call(), call()))
    assert (operators.macs, operators.not_counted) == (0, {name: 2})


def test_operators_without_macs_are_named_but_no_views() -> None:
    x = ones(2, 3)
    assert watched(lambda: x.T.relu() + 1).others == {"add", "relu"}


def test_tensors_are_found_in_containers_and_objects_in_order() -> None:
    first, second = ones(1), ones(2)
    holder = nn.Identity()
    holder.kept = {"a": [first], "itself": holder}
    assert [len(tensor) for tensor in tensors((second, holder, first))] == [2, 1, 1]


def moved(model: nn.Module, *args: torch.Tensor) -> int:
    with torch.no_grad(), Operators() as operators:
        model.eval()(*args)
    return operators.bytes


def test_what_is_only_written_is_not_read() -> None:
    x, out = torch.rand(64), torch.empty(64)
    for call, moved_tensors in (
        (lambda: torch.add(x, x, out=out), 2),  # x is one tensor
        (out.exponential_, 1),
        (out.log_normal_, 1),
    ):
        assert watched(call).bytes == moved_tensors * x.nbytes


class Tied(nn.Module):
    """Its last product reads the whole table of its embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.unused = nn.Embedding(50, 8), nn.Linear(8, 8)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(self.table(tokens), self.table.weight)


class Functions(nn.Module):
    """It changes a tensor in place, copies it, and reads the first rows of a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("positions", torch.zeros(100, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.relu_(x.clone() + self.positions[: len(x)])


class Halves(nn.Module):
    """It multiplies two views of one tensor, each with half of its elements."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left, right = x.chunk(2)
        return left * right


def test_what_operators_read_and_write_moves_once_for_each_of_them() -> None:
    x = torch.rand(4, 8)
    assert moved(nn.ReLU(), x) == moved(nn.ReLU(inplace=True), x) == 2 * x.nbytes
    assert moved(nn.Linear(8, 8, bias=False), x) == 2 * x.nbytes + 4 * 8 * 8
    assert moved(nn.Bilinear(8, 8, 2, bias=False), x, x) == x.nbytes + 4 * (2 * 8 * 8 + 4 * 2)
    assert moved(Functions(), x) == (2 + 3 + 2) * x.nbytes
    assert moved(nn.ReLU(), x[:1].expand(1000, 8)) == (4 + 1000) * 8 * 4
    assert moved(Halves(), x) == 1.5 * x.nbytes


def test_a_view_and_a_tensor_that_is_not_filled_move_nothing() -> None:
    x = torch.rand(1, 4, 8)
    for module in (nn.Identity(), nn.Dropout(), nn.Flatten()):
        assert moved(module, x) == 0
    model = nn.Identity()
    model.forward = torch.empty_like
    assert moved(model, x) == 0
    model.forward = torch.zeros_like  # it only writes
    assert moved(model, x) == x.nbytes
    model.forward = lambda x: x.new_zeros(3)
    assert moved(model, x) == 3 * x.itemsize


def test_of_a_table_only_what_is_looked_up_moves() -> None:
    tokens = torch.zeros(2, 3, dtype=torch.int64)
    looked_up, result = 4 * 6 * 8, 4 * 6 * 50
    assert moved(nn.Embedding(50, 8), tokens) == tokens.nbytes + looked_up
    assert moved(Tied(), tokens) == tokens.nbytes + 2 * looked_up + result + 4 * 50 * 8


class Cache(nn.Module):
    """It sets one row of a long buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(1000, 8))

    def forward(self, place: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        return self.rows.index_copy_(0, place, row)


def test_of_a_table_only_what_is_set_moves() -> None:
    place, row = torch.tensor([5]), torch.rand(1, 8)
    assert moved(Cache(), place, row) == place.nbytes + row.nbytes


def test_an_operator_without_a_result_moves_what_it_reads() -> None:
    model, x = nn.Identity(), torch.rand(4, 8)
    model.forward = lambda x: torch.equal(x, x.clone())
    assert moved(model, x) == (2 + 2) * x.nbytes
