"""Expected values: hand arithmetic, and the worked numbers of the specification of each loss."""

import math

import pytest
import torch

from model_updates.losses import ckc, element_mse, info_nce, kl_rows, multi_positive_info_nce


def backward(loss: torch.Tensor) -> None:
    loss.backward()  # type: ignore[no-untyped-call]


def random_cosines(rows: int, columns: int, *, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(rows, columns, generator=generator, dtype=torch.float64) * 2 - 1


def test_info_nce_of_orthonormal_pairs_is_the_closed_form() -> None:
    assert info_nce(torch.eye(4, dtype=torch.float64), 1.0).item() == pytest.approx(0.743668, abs=1e-6)
    assert info_nce(torch.eye(7, dtype=torch.float64), 3.0).item() == pytest.approx(
        math.log(1 + 6 * math.exp(-3))
    )


def test_info_nce_of_collapsed_features_is_the_log_of_the_batch() -> None:
    assert info_nce(torch.ones(5, 5, dtype=torch.float64), 100.0).item() == pytest.approx(math.log(5))


def test_info_nce_averages_both_directions() -> None:
    similarities = random_cosines(6, 6)
    assert info_nce(similarities, 4.0).item() == pytest.approx(info_nce(similarities.T, 4.0).item())
    expected = 0.0
    for matrix in (similarities, similarities.T):
        for i in range(6):
            row = [math.exp(4.0 * value) for value in matrix[i].tolist()]
            expected -= math.log(row[i] / sum(row)) / 12
    assert info_nce(similarities, 4.0).item() == pytest.approx(expected)


def test_info_nce_teaches_the_scale() -> None:
    scale = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    backward(info_nce(torch.eye(4, dtype=torch.float64), scale))
    assert scale.grad is not None
    assert scale.grad.item() < 0


def test_info_nce_refuses_a_matrix_without_a_diagonal() -> None:
    with pytest.raises(ValueError, match="multi_positive_info_nce"):
        info_nce(random_cosines(3, 4), 1.0)


def test_multi_positive_equals_info_nce_when_each_image_comes_once() -> None:
    similarities = random_cosines(6, 6)
    ids = torch.tensor([9, 4, 7, 1, 0, 3])
    assert multi_positive_info_nce(similarities, 5.0, ids, ids).item() == pytest.approx(
        info_nce(similarities, 5.0).item()
    )


def test_multi_positive_matches_a_loop_over_its_formula() -> None:
    similarities = random_cosines(4, 5, seed=3)
    rows, columns = [0, 1, 1, 2], [1, 0, 1, 2, 0]
    expected = 0.0
    for matrix, own, other in ((similarities, rows, columns), (similarities.T, columns, rows)):
        logs = torch.log_softmax(2.0 * matrix, dim=1)
        for i, image in enumerate(own):
            positives = [j for j, candidate in enumerate(other) if candidate == image]
            expected -= sum(logs[i, j].item() for j in positives) / len(positives) / len(own) / 2
    value = multi_positive_info_nce(similarities, 2.0, torch.tensor(rows), torch.tensor(columns)).item()
    assert value == pytest.approx(expected)


def test_two_captions_of_one_image_do_not_repel_each_other() -> None:
    # Two pairs of one picture, all four cosines 1: the loss is the entropy ln 2, its gradient zero.
    similarities = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)
    same = torch.tensor([5, 5])
    loss = multi_positive_info_nce(similarities, 10.0, same, same)
    backward(loss)
    assert loss.item() == pytest.approx(math.log(2))
    assert similarities.grad is not None
    assert similarities.grad.abs().max().item() < 1e-12


def test_a_row_without_a_positive_adds_nothing() -> None:
    similarities = random_cosines(2, 1)
    value = multi_positive_info_nce(similarities, 1.0, torch.tensor([0, 9]), torch.tensor([0]))
    one_row = -torch.log_softmax(similarities.T, dim=1)[0, 0] / 2
    assert value.item() == pytest.approx(one_row.item())


def test_element_mse_is_the_papers_form_divided_by_half_the_dimension() -> None:
    generator = torch.Generator().manual_seed(1)
    a, b = torch.randn(2, 3, 512, generator=generator, dtype=torch.float64)
    papers_form = (a - b).square().sum() / (2 * 3)
    assert (papers_form / element_mse(a, b)).item() == pytest.approx(256)


def test_element_mse_counts_masked_rows_only_and_survives_their_nan() -> None:
    a = torch.tensor([[1.0, 3.0], [float("nan"), 0.0]], requires_grad=True)
    b = torch.zeros(2, 2)
    loss = element_mse(a, b, torch.tensor([True, False]))
    backward(loss)
    assert loss.item() == pytest.approx(5.0)
    assert a.grad is not None
    assert a.grad.tolist() == [[1.0, 3.0], [0.0, 0.0]]


def test_element_mse_without_a_row_is_zero_with_zero_gradient() -> None:
    a = torch.ones(2, 3, requires_grad=True)
    loss = element_mse(a, torch.zeros(2, 3), torch.zeros(2, dtype=torch.bool))
    backward(loss)
    assert loss.item() == 0
    assert a.grad is not None
    assert a.grad.abs().sum().item() == 0


def test_element_mse_refuses_to_broadcast() -> None:
    with pytest.raises(ValueError, match="one shape"):
        element_mse(torch.zeros(2, 3), torch.zeros(1, 3))


def test_kl_runs_from_teacher_to_student() -> None:
    p = torch.tensor([[0.7, 0.2, 0.1]], dtype=torch.float64).log()
    q = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64).log()
    assert kl_rows(p, q).item() == pytest.approx(0.085123, abs=1e-6)
    assert kl_rows(q, p).item() == pytest.approx(0.092033, abs=1e-6)


def test_kl_averages_rows_and_pays_nothing_for_an_unchanged_model() -> None:
    p = torch.tensor([[0.7, 0.2, 0.1], [0.5, 0.3, 0.2]], dtype=torch.float64).log()
    q = torch.tensor([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]], dtype=torch.float64).log()
    assert kl_rows(p, q).item() == pytest.approx(0.085123 / 2, abs=1e-6)
    student = random_cosines(4, 4).requires_grad_()
    loss = kl_rows(student.detach().clone(), student)
    backward(loss)
    assert loss.item() == pytest.approx(0, abs=1e-12)
    assert student.grad is not None
    assert student.grad.abs().max().item() < 1e-12


def test_kl_leaves_the_teacher_alone() -> None:
    teacher, student = random_cosines(3, 3).requires_grad_(), random_cosines(3, 3, seed=1).requires_grad_()
    backward(kl_rows(teacher, student))
    assert teacher.grad is None
    assert student.grad is not None


def test_ckc_of_an_unchanged_orthogonal_model_is_the_closed_form() -> None:
    features = torch.eye(4, dtype=torch.float64)  # two images, then their two texts
    assert ckc(features, features, 1.0).item() == pytest.approx(0.743668, abs=1e-6)


def test_ckc_of_collapsed_features_is_the_log_of_twice_the_batch() -> None:
    features = torch.ones(8, 3, dtype=torch.float64)
    assert ckc(features, features, 14.0).item() == pytest.approx(2.07944, abs=1e-5)


def test_ckc_ignores_the_length_of_either_side() -> None:
    generator = torch.Generator().manual_seed(2)
    h, z = torch.randn(2, 6, 5, generator=generator, dtype=torch.float64)
    assert ckc(7 * h, 0.1 * z, 3.0).item() == pytest.approx(ckc(h, z, 3.0).item())


def test_ckc_teaches_the_new_model_and_the_scale_but_not_the_old_model() -> None:
    generator = torch.Generator().manual_seed(2)
    h = torch.randn(6, 5, generator=generator, requires_grad=True)
    z = torch.randn(6, 5, generator=generator, requires_grad=True)
    scale = torch.tensor(3.0, requires_grad=True)
    backward(ckc(h, z, scale))
    assert z.grad is None
    assert h.grad is not None
    assert h.grad.abs().sum().item() > 0
    assert scale.grad is not None
