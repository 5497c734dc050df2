"""Which kind of adapter a domain gets, by what the encoder offers."""

from model_updates.encoder import Encoder
from model_updates.inserts import Insert, Owner
from model_updates.parts.feature_head import FeatureHead
from model_updates.parts.low_rank import LowRank


def adapter_for(encoder: Encoder, owner: Owner, *, rank: int) -> Insert:
    """Returns an owner's adapter, ready to train: the one in the encoder, or a new one that changes nothing yet.

    A new one is appended to the encoder's inserts; the rank is of low-rank deltas.
    """
    for insert in encoder.inserts:
        if insert.owner == owner and insert.tower == "image":
            loosen(insert)
            return insert
    model = encoder.model
    made: Insert
    if maps_features(encoder):
        made = FeatureHead.build(owner, FeatureHead.configuration(encoder.trunk_dim, encoder.dim), model)
    else:
        made = LowRank.build(owner, LowRank.configuration(model, rank=rank, alpha=2 * rank), model)
    encoder.inserts.append(made)
    loosen(made)
    return made


def maps_features(encoder: Encoder) -> bool:
    """True when an encoder has a head on cached trunk features, so that a domain's own head needs no picture."""
    return hasattr(encoder.model, "image_head")


def loosen(adapter: Insert) -> None:
    """Makes an adapter ready to train."""
    if isinstance(adapter, LowRank):
        adapter.loosen()
    else:
        adapter.requires_grad_(True)


def settle(adapter: Insert) -> None:
    """Ends an adapter's training."""
    if isinstance(adapter, LowRank):
        adapter.settle()
    else:
        adapter.requires_grad_(False)
