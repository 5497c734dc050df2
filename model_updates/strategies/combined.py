"""Strategies that are made of another one by adding a memory (`<name>+er`) or TEIR's rows (`teir+<name>`)."""

from model_updates.parts.replaying import with_er
from model_updates.parts.teir import with_teir
from model_updates.strategies.coda_prompt import CodaPrompt
from model_updates.strategies.ctp import Ctp
from model_updates.strategies.der import Der
from model_updates.strategies.dual_prompt import DualPrompt
from model_updates.strategies.ema_merge import EmaMerge
from model_updates.strategies.er import Er
from model_updates.strategies.finetune import Finetune
from model_updates.strategies.language_lora import LanguageLora
from model_updates.strategies.mla import Mla
from model_updates.strategies.mod_x import ModX
from model_updates.strategies.oewc import Oewc
from model_updates.strategies.p_tuning import PTuning

FinetuneWithEr = with_er(Finetune)
ModXWithEr = with_er(
    ModX,
    "the paper keeps 1,000 random pairs of the initial data and as many more after each phase; here all chunks are "
    "alike;",
)
EmaMergeWithEr = with_er(EmaMerge)
CtpWithEr = with_er(Ctp)

TeirOewc = with_teir(Oewc)
TeirEr = with_teir(Er)
TeirDer = with_teir(Der)
TeirMla = with_teir(Mla)
TeirPTuning = with_teir(PTuning)
TeirLanguageLora = with_teir(LanguageLora)
TeirDualPrompt = with_teir(DualPrompt)
TeirCodaPrompt = with_teir(CodaPrompt)
