"""ResNet-50, ViT-B/16 and GPT-2 in plain ``torch.nn``, one idea for each class, from top to bottom.

The first two take (N, 3, H, W) float32 images and return (N, classes) logits. GPT-2 takes (N, T)
tokens and returns (N, T, vocabulary) logits. Their layers have the shapes of the published
networks, but their weights are not trained. Build them under ``torch.device("meta")`` to count
without memory or arithmetic.
"""

import random
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

if TYPE_CHECKING:
    from pandas import DataFrame, Series


@torch.fx.wrap  # torch.fx, which lesson 05 uses, records the call instead of looking inside
def _checked(images: Tensor, height: int | str, width: int | str) -> Tensor:
    """``images``, or a ValueError if they are not (N, 3, height, width); "H" and "W" are any."""
    shape = tuple(images.shape)
    if len(shape) != 4 or shape[1] != 3 or (height, width) not in (("H", "W"), shape[2:]):
        raise ValueError(f"images must be (N, 3, {height}, {width}), but got {shape}")
    return images


class Bottleneck(nn.Module):
    """1 × 1 down to ``width`` channels, 3 × 3, 1 × 1 up to four times as many, plus the input.

    (N, c_in, H, W) in, (N, 4 · width, H / stride, W / stride) out, rounded up. He et al., "Deep
    residual learning for image recognition", 2015. The stride is in the 3 × 3, as in today's
    implementations; the paper has it in the first 1 × 1.
    """

    def __init__(self, c_in: int, width: int, stride: int) -> None:
        super().__init__()
        c_out = 4 * width
        self.conv1 = nn.Conv2d(c_in, width, kernel_size=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, c_out, kernel_size=1, bias=False)
        self.bn3 = nn.BatchNorm2d(c_out)
        self.relu = nn.ReLU()
        # The input can only be added to an output of the same shape.
        self.shortcut = nn.Identity()
        if stride != 1 or c_in != c_out:
            resize = nn.Conv2d(c_in, c_out, kernel_size=1, stride=stride, bias=False)
            self.shortcut = nn.Sequential(resize, nn.BatchNorm2d(c_out))

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return self.relu(y + self.shortcut(x))


class ResNet50(nn.Module):
    """A stem, four stages of 3, 4, 6 and 3 bottlenecks, and one linear layer.

    25,557,032 parameters with 1000 classes; 4.089 billion MACs for one 224 × 224 image. Each stage
    after the first halves the height and the width, and doubles the channels.
    """

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.stage1 = _stage(64, 64, blocks=3, stride=1)
        self.stage2 = _stage(256, 128, blocks=4, stride=2)
        self.stage3 = _stage(512, 256, blocks=6, stride=2)
        self.stage4 = _stage(1024, 512, blocks=3, stride=2)
        self.mean = nn.AdaptiveAvgPool2d(1)
        self.linear = nn.Linear(2048, classes)

    def forward(self, images: Tensor) -> Tensor:
        x = _checked(images, "H", "W")
        x = self.pool(self.relu(self.bn1(self.conv1(x))))
        x = self.stage4(self.stage3(self.stage2(self.stage1(x))))
        return self.linear(self.mean(x).flatten(1))


def _stage(c_in: int, width: int, blocks: int, stride: int) -> nn.Sequential:
    first = Bottleneck(c_in, width, stride)
    return nn.Sequential(first, *(Bottleneck(4 * width, width, 1) for _ in range(blocks - 1)))


class Attention(nn.Module):
    """Each token attends to every token: softmax(Q Kᵀ / √d) V in each of ``heads`` heads.

    (N, T, width) in and out; ``width`` is a multiple of ``heads``.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(width, 3 * width)  # the three projections as one product
        self.to_out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.to_qkv(x).chunk(3, dim=-1)
        q, k, v = (self.split_heads(part) for part in (q, k, v))  # (N, heads, T, width / heads)
        mixed = F.scaled_dot_product_attention(q, k, v)
        return self.to_out(mixed.transpose(1, 2).flatten(2))

    def split_heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class EncoderBlock(nn.Module):
    """Attention, then a small network for each token.

    Each works on its normalised input, and its result is added to the input as it was.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT_B_16(nn.Module):
    """The image as 196 tokens of 16 × 16 pixels, twelve encoder blocks, and one linear layer.

    86,567,656 parameters with 1000 classes; 17.564 billion MACs for one image, which must be
    224 × 224. Dosovitskiy et al., "An image is worth 16x16 words", 2020.
    """

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        width, heads, blocks, patch = 768, 12, 12, 16
        tokens = (224 // patch) ** 2 + 1  # one more: the class token, which gathers the answer
        self.patches = nn.Conv2d(3, width, kernel_size=patch, stride=patch)
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.position = nn.Parameter(0.02 * torch.randn(1, tokens, width))
        self.blocks = nn.Sequential(*(EncoderBlock(width, heads) for _ in range(blocks)))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.linear = nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        x = _checked(images, 224, 224)
        x = self.patches(x).flatten(2).transpose(1, 2)  # (N, 196, 768)
        first = self.class_token.expand(x.shape[0], -1, -1)
        x = torch.cat([first, x], dim=1) + self.position
        x = self.norm(self.blocks(x))
        return self.linear(x[:, 0])


class Cache:
    """The keys and values of all tokens so far, in each block, which need not be computed again.

    ``keys`` and ``values`` are (blocks, N, heads, context, width / heads), in the model's type.
    ``length`` tokens are stored. ``batch`` is N of the tokens. Use it under ``torch.no_grad()``.
    """

    def __init__(self, model: "GPT2", batch: int = 1) -> None:
        weight, attention = model.tokens.weight, model.blocks[0].attention
        context, width = model.position.weight.shape
        shape = (len(model.blocks), batch, attention.heads, context, width // attention.heads)
        self.keys = weight.new_zeros(shape)
        self.values = weight.new_zeros(shape)
        self.length = 0

    def add(self, block: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store the new tokens' keys and values; return those of all tokens so far."""
        end = self.length + keys.shape[2]
        self.keys[block, :, :, self.length : end] = keys
        self.values[block, :, :, self.length : end] = values
        return self.keys[block, :, :, :end], self.values[block, :, :, :end]


class CausalAttention(Attention):
    """Each token attends to itself and to all tokens before it."""

    def forward(self, x: Tensor, cache: Cache | None = None, block: int = 0) -> Tensor:
        q, k, v = self.to_qkv(x).chunk(3, dim=-1)
        q, k, v = (self.split_heads(part) for part in (q, k, v))
        if cache is not None:
            k, v = cache.add(block, k, v)
        new, every = q.shape[2], k.shape[2]
        # A single new token sees all tokens; of several, each sees itself and those before it.
        sees = None
        if new > 1:
            sees = torch.ones(new, every, dtype=torch.bool, device=x.device).tril(every - new)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=sees)
        return self.to_out(mixed.transpose(1, 2).flatten(2))


class DecoderBlock(nn.Module):
    """An encoder block whose attention is causal and can use a cache."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = CausalAttention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor, cache: Cache | None = None, block: int = 0) -> Tensor:
        x = x + self.attention(self.norm1(x), cache, block)
        return x + self.mlp(self.norm2(x))


class GPT2(nn.Module):
    """Tokens and their positions as vectors, decoder blocks, and a score for each next token.

    (N, T) whole numbers in, (N, T, vocabulary) logits out. The default is the smallest published
    size, with 124,439,808 parameters; the others have 24 blocks of 16 heads and a width of 1024, 36
    of 20 and 1280, and 48 of 25 and 1600. The last product uses the table of the tokens again.
    Without attention, a token takes 2 FLOP per parameter that is a factor of a product:
    247,064,064. Radford et al., "Language models are unsupervised multitask learners", 2019.
    """

    def __init__(
        self,
        blocks: int = 12,
        heads: int = 12,
        width: int = 768,
        vocabulary: int = 50_257,
        context: int = 1024,
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(DecoderBlock(width, heads) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        for table in (self.tokens, self.position):
            nn.init.normal_(table.weight, std=0.02)  # small, so logits stay small

    def forward(self, tokens: Tensor, cache: Cache | None = None) -> Tensor:
        """The logits; with a ``cache``, the tokens continue those that it holds."""
        start = 0 if cache is None else cache.length
        end, most = start + tokens.shape[1], self.position.num_embeddings
        if end > most:
            raise ValueError(f"tokens must be {most} or fewer with those of the cache, not {end}")
        x = self.tokens(tokens) + self.position(torch.arange(start, end, device=tokens.device))
        for number, block in enumerate(self.blocks):
            x = block(x, cache, number)
        if cache is not None:
            cache.length = end
        return F.linear(self.norm(x), self.tokens.weight)


def macs(model: nn.Module, x: Tensor) -> int:
    """The multiply-adds of ``model(x)``, from shapes: of a layer, outputs × weights per output.

    Counts ``nn.Conv2d``, ``nn.Linear`` and the two products of ``Attention``, where they are
    called as modules, as in the first two models and in ``workloads.SmallCNN``; all else is 0 by
    convention. Of GPT-2, the last product is missing, and attention with a cache is wrong.
    """
    total = 0

    def add(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        nonlocal total
        if isinstance(module, nn.Conv2d | nn.Linear):
            total += output.numel() * module.weight[0].numel()
        elif isinstance(module, Attention):
            n, tokens, width = inputs[0].shape
            total += 2 * n * tokens * tokens * width  # Q Kᵀ, and the weights with V

    hooks = [module.register_forward_hook(add) for module in model.modules()]
    model(x)
    for hook in hooks:
        hook.remove()
    return total


def fastest(calls: Mapping[Hashable, Callable[[], object]], rounds: int) -> dict:
    """The shortest time of each call, in seconds; each round makes all calls in random order."""
    shortest = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name in random.sample(list(calls), len(calls)):
            start = time.perf_counter()
            calls[name]()
            shortest[name] = min(shortest[name], time.perf_counter() - start)
    return shortest


def growth_with_batch(seconds: Mapping[tuple[str, int], float]) -> dict[str, dict[str, float]]:
    """The latency and the throughput of a batch, compared with one input.

    ``seconds`` maps a name and a size of its batch to the time of a call.
    """
    growth = {}
    for (name, size), duration in seconds.items():
        if size > 1:
            ratio = duration / seconds[name, 1]
            growth[f"{name}, batch of {size}"] = {"latency": ratio, "throughput": size / ratio}
    return growth


def layer_costs(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> dict[str, int]:
    """What one call of a layer costs: counts for one image, and the ``bytes`` for the batch.

    The bytes are those of the parameters, the input and the output, in float32.
    """
    if isinstance(layer, nn.Identity):  # it returns its input
        return {"MACs": 0, "parameters": 0, "output elements": 0, "bytes": 0}
    elements = output[0].numel()
    multiplies = isinstance(layer, nn.Conv2d | nn.Linear)
    parameters = sum(parameter.numel() for parameter in layer.parameters())
    return {
        "MACs": elements * layer.weight[0].numel() if multiplies else 0,
        "parameters": parameters,
        "output elements": elements,
        "bytes": 4 * (parameters + inputs[0].numel() + output.numel()),
    }


def shortest_calls(rows: Sequence[Mapping[str, object]], rounds: int) -> "DataFrame":
    """The rows of the first of equal ``rounds``, each with its shortest ``time`` of all rounds."""
    from pandas import DataFrame  # slow to import, and only needed here

    table = DataFrame(list(rows))
    first_round = table[: len(table) // rounds]
    shortest = table.groupby(table.index % len(first_round))["time"].min()
    return first_round.assign(time=shortest)


def under_the_roof(
    calls: "DataFrame", groups: "Series", images: int
) -> dict[str, tuple[float, float]]:
    """The arithmetic intensity in FLOP/B and the rate in FLOP/s of each group of calls.

    ``calls`` is a table of ``layer_costs`` with a ``time`` in seconds, for a batch of so many
    ``images``; calls without MACs are left out.
    """
    rows = calls[calls["MACs"] > 0]
    sums = rows.groupby(groups, sort=False)[["MACs", "bytes", "time"]].sum()
    flop = 2 * images * sums["MACs"]
    pairs = zip(flop / sums["bytes"], flop / sums["time"], strict=True)
    return dict(zip(sums.index, pairs, strict=True))
