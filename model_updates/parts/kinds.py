"""The kinds of inserts that an encoder can hold: one line each."""

from model_updates.fusion.encoder import FusionEncoder
from model_updates.inserts import Insert
from model_updates.parts.adapters import FeatureHead
from model_updates.parts.deep_prompts import DeepImagePrompts, DeepTextPrompts
from model_updates.parts.experts import ImageExperts, TextExperts
from model_updates.parts.layer_inserts import LayerBottlenecks, LayerLowRank
from model_updates.parts.low_rank import LowRank
from model_updates.parts.prompt_pool import ImagePrompts, TextPrompts
from model_updates.parts.queried_prefixes import CodaPrompts, DualPrompts
from model_updates.parts.random_head import RandomHead
from model_updates.parts.ridge_head import RidgeHead
from model_updates.parts.router import LdaRouter
from model_updates.parts.second_reading import SecondReading
from model_updates.parts.text_inserts import TextBottlenecks, TextLowRank, TextPrefixes

KINDS: dict[str, type[Insert]] = {
    FeatureHead.kind: FeatureHead,
    ImagePrompts.kind: ImagePrompts,
    TextPrompts.kind: TextPrompts,
    DeepImagePrompts.kind: DeepImagePrompts,
    DeepTextPrompts.kind: DeepTextPrompts,
    ImageExperts.kind: ImageExperts,
    TextExperts.kind: TextExperts,
    LowRank.kind: LowRank,
    LdaRouter.kind: LdaRouter,
    RidgeHead.kind: RidgeHead,
    RandomHead.kind: RandomHead,
    SecondReading.kind: SecondReading,
    DualPrompts.kind: DualPrompts,
    CodaPrompts.kind: CodaPrompts,
    TextBottlenecks.kind: TextBottlenecks,
    TextLowRank.kind: TextLowRank,
    TextPrefixes.kind: TextPrefixes,
    LayerBottlenecks.kind: LayerBottlenecks,
    LayerLowRank.kind: LayerLowRank,
    FusionEncoder.kind: FusionEncoder,
}
