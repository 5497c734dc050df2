"""One continual-learning method per file; this registry is the one line to add for a new one."""

from model_updates.errors import UnknownStrategy
from model_updates.parts.replaying import with_er
from model_updates.parts.teir import with_teir
from model_updates.strategies.afec import Afec
from model_updates.strategies.c_clip import CClip
from model_updates.strategies.cll_clip import CllClip
from model_updates.strategies.co2l import Co2l
from model_updates.strategies.coda_prompt import CodaPrompt
from model_updates.strategies.cpe_clip import CpeClip
from model_updates.strategies.ctp import Ctp
from model_updates.strategies.der import Der
from model_updates.strategies.dkr import Dkr
from model_updates.strategies.domain_adapters import DomainAdapters
from model_updates.strategies.dual_prompt import DualPrompt
from model_updates.strategies.ema_merge import EmaMerge
from model_updates.strategies.er import Er
from model_updates.strategies.evergreen import Evergreen
from model_updates.strategies.ewc import Ewc
from model_updates.strategies.finetune import Finetune
from model_updates.strategies.geodl import Geodl
from model_updates.strategies.icarl import Icarl
from model_updates.strategies.incclip import Incclip
from model_updates.strategies.joint import Joint
from model_updates.strategies.kmeans import Kmeans
from model_updates.strategies.l2p import L2p
from model_updates.strategies.language_lora import LanguageLora
from model_updates.strategies.language_tables import LanguageTables
from model_updates.strategies.lwf import Lwf
from model_updates.strategies.mas import Mas
from model_updates.strategies.mla import Mla
from model_updates.strategies.mod_x import ModX
from model_updates.strategies.moe_adapters import MoeAdapters
from model_updates.strategies.mof import Mof
from model_updates.strategies.new_words import NewWords
from model_updates.strategies.oewc import Oewc
from model_updates.strategies.p_tuning import PTuning
from model_updates.strategies.rwalk import Rwalk
from model_updates.strategies.si import Si
from model_updates.strategies.table_joint import TableJoint
from model_updates.strategies.task_arithmetic import TaskArithmetic
from model_updates.strategies.teir import Teir
from model_updates.strategies.tic import Tic
from model_updates.strategies.ties import Ties
from model_updates.strategies.ucir import Ucir
from model_updates.strategies.wise_ft import WiseFt
from model_updates.strategies.zscl import Zscl
from model_updates.strategy import Strategy

FinetuneEr = with_er(Finetune)
ModXEr = with_er(
    ModX,
    "the paper keeps 1,000 random pairs of the initial data and as many more after each phase; here all chunks are "
    "alike;",
)
EmaMergeEr = with_er(EmaMerge)
WITH_TEIR = [with_teir(kind) for kind in (Oewc, Er, Der, Mla, PTuning, LanguageLora, DualPrompt, CodaPrompt)]
CtpEr = with_er(Ctp)

STRATEGIES: dict[str, type[Strategy]] = {
    Finetune.name: Finetune,
    CllClip.name: CllClip,
    Teir.name: Teir,
    LanguageTables.name: LanguageTables,
    CClip.name: CClip,
    Ctp.name: Ctp,
    CtpEr.name: CtpEr,
    Ewc.name: Ewc,
    Si.name: Si,
    Mas.name: Mas,
    Rwalk.name: Rwalk,
    Afec.name: Afec,
    Lwf.name: Lwf,
    ModX.name: ModX,
    Dkr.name: Dkr,
    Zscl.name: Zscl,
    Oewc.name: Oewc,
    Er.name: Er,
    FinetuneEr.name: FinetuneEr,
    ModXEr.name: ModXEr,
    Joint.name: Joint,
    Mof.name: Mof,
    Kmeans.name: Kmeans,
    Icarl.name: Icarl,
    Ucir.name: Ucir,
    Geodl.name: Geodl,
    Co2l.name: Co2l,
    Incclip.name: Incclip,
    Tic.name: Tic,
    WiseFt.name: WiseFt,
    EmaMerge.name: EmaMerge,
    EmaMergeEr.name: EmaMergeEr,
    TaskArithmetic.name: TaskArithmetic,
    Ties.name: Ties,
    Der.name: Der,
    TableJoint.name: TableJoint,
    Mla.name: Mla,
    PTuning.name: PTuning,
    LanguageLora.name: LanguageLora,
    DualPrompt.name: DualPrompt,
    CodaPrompt.name: CodaPrompt,
    **{kind.name: kind for kind in WITH_TEIR},
    L2p.name: L2p,
    CpeClip.name: CpeClip,
    MoeAdapters.name: MoeAdapters,
    DomainAdapters.name: DomainAdapters,
    NewWords.name: NewWords,
    Evergreen.name: Evergreen,
}


def strategy_named(name: str) -> type[Strategy]:
    """Returns a registered strategy.

    Raises:
        UnknownStrategy: no strategy of that name; the text lists those there are.
    """
    if name not in STRATEGIES:
        raise UnknownStrategy(f"there is no strategy {name!r}; choose one of: {', '.join(STRATEGIES)}")
    return STRATEGIES[name]
