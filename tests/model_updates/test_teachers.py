"""Teachers stay what they were, and an update that changes one fails."""

import pytest
import torch

from model_updates.errors import TeacherMoved
from model_updates.strategies.finetune import Finetune
from model_updates.strategy import UpdateContext
from model_updates.teachers import Teachers
from tests.model_updates.tiny import context_for, make_strategy, teach, tiny_encoder, toy_pairs


class Meddler(Finetune):
    """Fine-tuning that touches the encoder it was to look at."""

    how = ""

    def before_update(self, context: UpdateContext) -> None:
        super().before_update(context)
        weight = context.open_previous().model.get_parameter("visual.proj")
        if self.how == "moves":
            weight.data.add_(1e-3)
        elif self.how == "trains":
            weight.requires_grad_(True)
        else:
            context.open_previous().model.train()


@pytest.mark.parametrize("how", ["moves", "trains", "leaves it in train mode"])
def test_an_update_that_changes_a_teacher_fails(how: str) -> None:
    meddler = Meddler(make_strategy("finetune").options)
    meddler.how = how
    with pytest.raises(TeacherMoved, match="the previous encoder, a frozen teacher, was changed"):
        teach(tiny_encoder(), meddler)


def test_a_teacher_is_a_copy_that_nobody_else_holds_and_the_same_one_each_time() -> None:
    context = context_for(tiny_encoder(), toy_pairs())
    teachers = Teachers(context)
    teacher = teachers.context.open_previous()
    assert teacher is teachers.context.open_previous()
    assert teacher is not context.open_previous()
    assert not any(parameter.requires_grad for _, parameter in teacher.parameters())
    with torch.no_grad():
        context.open_previous().model.get_parameter("visual.proj").add_(1.0)
    teachers.require_unmoved()
