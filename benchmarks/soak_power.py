"""What is simulated: power that goes and leaves some of a promotion, and what happens to a home in any order."""

from __future__ import annotations

import time
from pathlib import Path

from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test
from speed_timing import Measured

from app.home.folder import Home
from app.home.settings import load_settings
from app.learning import beginning
from tests.app.home import test_crash
from tests.app.home.publishing import promote
from tests.app.home.test_under_fire import HomeUnderFire
from tests.app.query.test_found_under_fire import FoundUnderFire


def power_cuts(work: Path, *, states: int) -> Measured:
    """Goes through what a power cut may leave of a promotion, and leaves out each class of fsync once."""
    began = time.monotonic()
    found: list[str] = []
    tried: list[int] = []
    for seed in range(1000):
        home = Home.create(work / f"power-{seed}")
        promote(home, "english")
        disk, files = test_crash.record_promotion(home)
        found += test_crash.violations(disk, files, work / "after", states=tried, seed=seed)
        if len(tried) >= states:
            break
    classes = ("files", "staged", "versions", "generations", "releases", "commits")
    noticed = []
    for forgotten in classes:
        home = Home.create(work / f"power-without-{forgotten}")
        promote(home, "english")
        disk, files = test_crash.record_promotion(home, frozenset({forgotten}))
        place, first = work / f"after-{forgotten}", test_crash.linked(files)
        found_one = next(test_crash.violations(disk, files, place, first=first), None)
        noticed += [forgotten] if found_one is not None else []
    return Measured(
        f"P2: {len(tried):,} states that a power cut may leave of a promotion",
        f"{len(found)} violations; {len(noticed)} of {len(classes)} classes of fsync are missed when left out",
        f"0 of >= 5,000 states; {len(classes)} of {len(classes)}",
        not found and len(noticed) == len(classes),
        f"the simulator of tests/app/home/power_loss.py, {time.monotonic() - began:.0f} s; missed: {noticed}",
    )


def histories(*, examples: int, steps: int) -> Measured:
    """Goes through random histories of a home, each of so many steps at most."""
    found, seconds = _violation(HomeUnderFire, examples, steps)
    return Measured(
        f"P1, P2: {examples:,} histories of up to {steps} steps",
        "1 violation" if found else "0 violations",
        "0",
        not found,
        "uploads, removals, updates, promotions, rejections, rollbacks, deaths, full disks, rot and two updates at "
        "once, in any order (tests/app/home/test_under_fire.py); after each step what is live is read to the last "
        f"byte, and the acknowledged pictures are looked up; {seconds:.0f} s{found}",
    )


def found(work: Path, *, examples: int, steps: int) -> Measured:
    """Goes through random histories of pictures, and asks every release after each step."""
    FoundUnderFire.new = work / "new"
    beginning.initialise(load_settings(home=FoundUnderFire.new))
    wrong, seconds = _violation(FoundUnderFire, examples, steps)
    return Measured(
        f"P5: what is found in {examples:,} histories of up to {steps} steps",
        "1 violation" if wrong else "0 violations",
        "0",
        not wrong,
        "uploads that share pictures, chunks withdrawn, pictures taken out and put back, indexes made whole and "
        "rollbacks, in any order (tests/app/query/test_found_under_fire.py); after each step every release is asked, "
        f"and shows what it has and may show, once; {seconds:.0f} s{wrong}",
    )


def _violation(machine: type[RuleBasedStateMachine], examples: int, steps: int) -> tuple[str, float]:
    """Says what the first history that ends wrong found, and how many seconds all took."""
    began, wrong = time.monotonic(), ""
    try:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps,
                deadline=None,
                database=None,
                derandomize=True,
            ),
        )
    except AssertionError as error:
        told = " ".join([str(error), *getattr(error, "__notes__", [])])  # Hypothesis notes the steps
        wrong = f"; {told[-3000:]}"
    return wrong, time.monotonic() - began
