"""One continual-learning method per file; the table here has one line for each.

Other packages bring strategies by the entry points that `model_updates.registry` reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from model_updates.errors import UnknownStrategy
from model_updates.registry import Registry

if TYPE_CHECKING:
    from model_updates.strategy import Strategy

STRATEGIES = Registry(
    {
        "finetune": "model_updates.strategies.finetune:Finetune",
        "cll-clip": "model_updates.strategies.cll_clip:CllClip",
        "teir": "model_updates.strategies.teir:Teir",
        "language-tables": "model_updates.strategies.language_tables:LanguageTables",
        "c-clip": "model_updates.strategies.c_clip:CClip",
        "ctp": "model_updates.strategies.ctp:Ctp",
        "ctp+er": "model_updates.strategies.combined:CtpWithEr",
        "ewc": "model_updates.strategies.ewc:Ewc",
        "si": "model_updates.strategies.si:Si",
        "mas": "model_updates.strategies.mas:Mas",
        "rwalk": "model_updates.strategies.rwalk:Rwalk",
        "afec": "model_updates.strategies.afec:Afec",
        "lwf": "model_updates.strategies.lwf:Lwf",
        "mod-x": "model_updates.strategies.mod_x:ModX",
        "dkr": "model_updates.strategies.dkr:Dkr",
        "zscl": "model_updates.strategies.zscl:Zscl",
        "oewc": "model_updates.strategies.oewc:Oewc",
        "er": "model_updates.strategies.er:Er",
        "finetune+er": "model_updates.strategies.combined:FinetuneWithEr",
        "mod-x+er": "model_updates.strategies.combined:ModXWithEr",
        "joint": "model_updates.strategies.joint:Joint",
        "mof": "model_updates.strategies.mof:Mof",
        "kmeans": "model_updates.strategies.kmeans:Kmeans",
        "icarl": "model_updates.strategies.icarl:Icarl",
        "ucir": "model_updates.strategies.ucir:Ucir",
        "geodl": "model_updates.strategies.geodl:Geodl",
        "co2l": "model_updates.strategies.co2l:Co2l",
        "incclip": "model_updates.strategies.incclip:Incclip",
        "tic": "model_updates.strategies.tic:Tic",
        "wise-ft": "model_updates.strategies.wise_ft:WiseFt",
        "ema-merge": "model_updates.strategies.ema_merge:EmaMerge",
        "ema-merge+er": "model_updates.strategies.combined:EmaMergeWithEr",
        "task-arithmetic": "model_updates.strategies.task_arithmetic:TaskArithmetic",
        "ties": "model_updates.strategies.ties:Ties",
        "der": "model_updates.strategies.der:Der",
        "cll-clip+joint": "model_updates.strategies.table_joint:TableJoint",
        "mla": "model_updates.strategies.mla:Mla",
        "p-tuning": "model_updates.strategies.p_tuning:PTuning",
        "lora": "model_updates.strategies.language_lora:LanguageLora",
        "dualprompt": "model_updates.strategies.dual_prompt:DualPrompt",
        "coda-prompt": "model_updates.strategies.coda_prompt:CodaPrompt",
        "teir+oewc": "model_updates.strategies.combined:TeirOewc",
        "teir+er": "model_updates.strategies.combined:TeirEr",
        "teir+der": "model_updates.strategies.combined:TeirDer",
        "teir+mla": "model_updates.strategies.combined:TeirMla",
        "teir+p-tuning": "model_updates.strategies.combined:TeirPTuning",
        "teir+lora": "model_updates.strategies.combined:TeirLanguageLora",
        "teir+dualprompt": "model_updates.strategies.combined:TeirDualPrompt",
        "teir+coda-prompt": "model_updates.strategies.combined:TeirCodaPrompt",
        "l2p": "model_updates.strategies.l2p:L2p",
        "cpe-clip": "model_updates.strategies.cpe_clip:CpeClip",
        "moe-adapters": "model_updates.strategies.moe_adapters:MoeAdapters",
        "domain-adapters": "model_updates.strategies.domain_adapters:DomainAdapters",
        "acil": "model_updates.strategies.acil:Acil",
        "ranpac": "model_updates.strategies.ranpac:Ranpac",
        "ridge-heads": "model_updates.strategies.ridge_heads:RidgeHeads",
        "new-words": "model_updates.strategies.new_words:NewWords",
        "evergreen": "model_updates.strategies.evergreen:Evergreen",
    }
)
DEFAULT_STRATEGY = "evergreen"  # teaches where nobody names another


def strategy_named(name: str) -> type[Strategy]:
    """Returns a registered strategy.

    Raises:
        UnknownStrategy: no strategy of that name; the text lists those there are.
        StrategyRefused: an installed package brings one that cannot be used.
    """
    require_strategy(name)
    return STRATEGIES[name]


def require_strategy(name: str) -> None:
    """Refuses a name that no strategy has, without loading one.

    Raises:
        UnknownStrategy: the text lists those there are.
    """
    if name not in STRATEGIES:
        raise UnknownStrategy(f"there is no strategy {name!r}; choose one of: {', '.join(STRATEGIES)}")
