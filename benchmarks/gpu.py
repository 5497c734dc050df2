"""Measures how much of a CUDA card training uses: ViT-B/16, both towers, in bfloat16; prints one line of JSON.

    python benchmarks/gpu.py [--pairs 4096] [--batch 256]

An update by `finetune` as the product runs it: epochs of pairs whose pictures are decoded once, the loss and the
optimizer included. Its operations are counted by torch while a batch runs forward and backward; the card's peak is
what a large product of two bfloat16 matrices reaches in the same run. Without a card it says so and ends.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

import torch
from speed_timing import Measured, timed
from speed_update import drawn_lesson, epoch_seconds
from torch.utils.flop_counter import FlopCounterMode

from model_updates.encoder import Encoder, training
from model_updates.opening import build_model, wrap
from model_updates.strategies.finetune import Finetune

ARCHITECTURE = "ViT-B-16"
BAR = 0.5
SIDE, PRODUCTS = 8192, 50
NO_CARD = "skipped: torch finds no CUDA device on this machine"


def main() -> None:
    """Prints the measurement, or why there is none."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--pairs", type=int, default=4096)
    parser.add_argument("--batch", type=int, default=256)
    asked = parser.parse_args()
    if not torch.cuda.is_available():
        print(NO_CARD)
        return
    print(json.dumps(asdict(share_of_the_card(pairs=asked.pairs, batch=asked.batch)), indent=1))


def share_of_the_card(*, pairs: int, batch: int) -> Measured:
    """Sets the operations a second of an update beside those of a product of matrices."""
    lesson, pictures = drawn_lesson(pairs)
    options = {"batch_size": batch}
    epoch = epoch_seconds(Finetune, lesson, pictures, opened=opened, **options)
    done = pairs / batch * operations(opened(), batch)
    rate, peak = done / epoch.seconds, peak_rate()
    return Measured(
        f"an update of both towers of {ARCHITECTURE} in bfloat16",
        f"{rate / peak:.0%} of what products of matrices reach on the card",
        f">= {BAR:.0%}",
        rate >= BAR * peak,
        f"{pairs / epoch.seconds:.0f} pairs a second in batches of {batch}, {rate / 1e12:.0f} of {peak / 1e12:.0f} "
        f"teraflops; {torch.cuda.get_device_name()}, torch {torch.__version__}",
    )


def opened(device: str = "cuda") -> Encoder:
    """Returns the encoder with random weights; speed does not depend on what they know."""
    torch.manual_seed(0)
    return wrap(build_model(ARCHITECTURE), ARCHITECTURE).to(device)


def operations(encoder: Encoder, batch: int) -> int:
    """Counts the floating-point operations of a batch through both towers, forward and backward."""
    size = encoder.preprocessing.size
    pixels = torch.zeros(batch, 3, size, size, device=encoder.device)
    tokens = encoder.tokenize(["two red boats on a lake"] * batch).to(encoder.device)
    encoder.model.requires_grad_(True)
    counted = FlopCounterMode(display=False)
    with training(encoder), counted:
        both = encoder.forward_images(pixels).sum() + encoder.forward_tokens(tokens).sum()
        both.backward()  # type: ignore[no-untyped-call]
    return counted.get_total_flops()


def peak_rate() -> float:
    """Returns the operations a second of a product of two matrices in bfloat16."""
    one, other = (torch.randn(SIDE, SIDE, device="cuda", dtype=torch.bfloat16) for _ in range(2))

    def multiply() -> None:
        for _ in range(PRODUCTS):
            one @ other
        torch.cuda.synchronize()

    multiply()
    return PRODUCTS * 2 * SIDE**3 / timed(multiply)


if __name__ == "__main__":
    main()
