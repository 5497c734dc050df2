"""The router: pictures of a domain take its route, others stay on the base route."""

import numpy as np
import pytest
from numpy.typing import NDArray

from model_updates import gaussians
from model_updates.inserts import ENCODER
from model_updates.parts.router import LdaRouter, fitted
from model_updates.routes import BASE
from tests.model_updates.tiny import tiny_encoder

RNG = np.random.default_rng(5)
SHAPE = RNG.normal(size=(24, 24))


def cloud(centre: float, count: int = 300) -> NDArray[np.float32]:
    """Points around a centre, stretched as all domains are."""
    return np.asarray(RNG.normal(size=(count, 24)) @ SHAPE + centre * SHAPE[0], dtype=np.float32)


def share(router: LdaRouter, trunk: NDArray[np.float32], route: str) -> float:
    return float(np.mean([guess == route for guess in router.guess(trunk)]))


@pytest.fixture(scope="module")
def router() -> LdaRouter:
    made = fitted({"photo": cloud(0), "sketch": cloud(8), "ink": cloud(-8)}, {"sketch", "ink"})
    assert made is not None
    return made


def test_unseen_pictures_of_a_domain_take_its_route(router: LdaRouter) -> None:
    assert share(router, cloud(8), "sketch") > 0.9
    assert share(router, cloud(-8), "ink") > 0.9


def test_pictures_of_a_domain_without_a_route_stay(router: LdaRouter) -> None:
    assert share(router, cloud(0), BASE) > 0.97


def test_pictures_of_no_domain_stay(router: LdaRouter) -> None:
    far = cloud(8) + 40 * SHAPE[1].astype(np.float32)
    assert share(router, far, BASE) == 1.0


def test_overlapping_domains_send_few_of_the_old_pictures_astray() -> None:
    made = fitted({"photo": cloud(0, 1000), "sketch": cloud(2, 1000)}, {"sketch"})
    assert made is not None
    assert share(made, cloud(0, 1000), "sketch") < 0.05
    assert share(made, cloud(2, 1000), "sketch") > 0


@pytest.mark.parametrize("count", [300, 100])  # more or fewer than directions are kept
def test_of_fewer_pictures_than_dimensions_the_same_main_axes_are_found(count: int) -> None:
    rows = RNG.normal(size=(count, 424)) * np.geomspace(1, 0.01, 424)
    rows[count // 3 :] += 0.2
    points = [rows[: count // 3], rows[count // 3 :]]
    whitening, _ = gaussians._gaussians(points)
    # Rows that are there several times have the same axes, and are more than there are dimensions.
    of_more, _ = gaussians._gaussians([np.repeat(one, 5, axis=0) for one in points])
    assert whitening.shape == of_more.shape == (424, 256)
    centres = np.stack([part.mean(axis=0) for part in points])
    found, wanted = (gaussians.distances_to(rows @ one, centres @ one) for one in (whitening, of_more))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_more_dimensions_than_are_kept_still_work() -> None:
    wide = [
        np.concatenate([cloud(c), RNG.normal(size=(300, 400))], axis=1).astype(np.float32) for c in (0, 9)
    ]
    made = fitted({"photo": wide[0], "sketch": wide[1]}, {"sketch"})
    assert made is not None
    assert made.whitening.shape == (424, 256)
    assert share(made, wide[1], "sketch") > 0.9


def test_without_a_route_there_is_no_router() -> None:
    assert fitted({"photo": cloud(0), "sketch": cloud(8)}, ()) is None
    assert fitted({"sketch": cloud(8), "photo": cloud(0, 5)}, {"photo"}) is None


def test_one_domain_is_told_from_what_is_unlike_it() -> None:
    made = fitted({"sketch": cloud(8), "photo": cloud(0, 5)}, {"sketch"})
    assert made is not None
    assert share(made, cloud(8), "sketch") > 0.9
    assert share(made, cloud(8) + 40 * SHAPE[1].astype(np.float32), BASE) == 1.0


@pytest.mark.parametrize("width", [24, 400])  # more than the main axes that are kept
def test_blank_pages_are_told_from_all_else(width: int) -> None:
    blank = np.ones((12, width), dtype=np.float32)
    made = fitted({"page": blank}, {"page"})
    assert made is not None
    assert share(made, blank, "page") == 1.0
    assert share(made, np.asarray(RNG.normal(size=(50, width)), dtype=np.float32), BASE) == 1.0


def test_the_nearest_route_is_told_however_far_it_is(router: LdaRouter) -> None:
    far = cloud(8) + 40 * SHAPE[1].astype(np.float32)
    assert set(router.nearest(np.concatenate([far, cloud(-8)]))) == {"sketch", "ink"}
    assert set(router.nearest(cloud(0))) <= {"sketch", "ink"}


def test_it_is_made_again_from_its_configuration_and_tensors(router: LdaRouter) -> None:
    again = LdaRouter.build(ENCODER, router.config, tiny_encoder().model)
    again.load_state_dict(router.state_dict())
    asked = cloud(6)
    assert again.guess(asked) == router.guess(asked)
