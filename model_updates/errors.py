"""What can go wrong while encoding and learning.

::

    ModelUpdateError
    ├── UnsafeWeights         a weights file that could run code when opened (pickle)
    ├── WeightsMismatch       weights that do not fit the architecture they were offered for
    ├── UnknownModel          no such open_clip architecture or pretrained tag
    ├── NotPlain              an encoder whose vectors plain open_clip would not give
    ├── ForeignTokenizer      a strategy wants to grow a vocabulary that is not ours to grow
    ├── UnknownStrategy       no strategy of that name
    ├── StrategyRefused       an installed package brings a strategy that cannot be used
    ├── StrategyMisfit        a strategy has nothing to do with a chunk, or cannot work on the encoder
    ├── BadStrategyOption     an option the strategy does not have, or a value it cannot take
    ├── NothingToLearn        no training pair is left for the strategy
    ├── NoFusion              an encoder has no fusion encoder that could re-rank
    ├── TeacherMoved          a strategy changed an encoder that it may only look at
    ├── TrainingDiverged      a loss or a gradient stopped being finite
    ├── NeedsLearning         what was asked for needs the packages that learning is done with
    └── VersionDamaged        a version folder whose files do not match its manifest
"""


class ModelUpdateError(Exception):
    """Base of every error that model_updates raises on purpose; its text is meant for people."""


class UnsafeWeights(ModelUpdateError):
    """Raised for weights in a pickled format, which can run code when opened."""


class WeightsMismatch(ModelUpdateError):
    """Raised when a weights file lacks tensors of the architecture or has others."""


class UnknownModel(ModelUpdateError):
    """Raised for an architecture or pretrained tag that open_clip does not have."""


class NotPlain(ModelUpdateError):
    """Raised when an encoder is to be written for plain open_clip, which has no place for a part of it."""


class NotPortable(ModelUpdateError):
    """Raised when an encoder is to be written as ONNX, and a part of it cannot be, or gives other vectors there."""


class ForeignTokenizer(ModelUpdateError):
    """Raised when a strategy must grow a vocabulary but the tower brings a tokenizer of its own."""


class UnknownStrategy(ModelUpdateError):
    """Raised for a strategy name that is not registered; the text lists the registered ones."""


class StrategyRefused(ModelUpdateError):
    """Raised for a strategy of an installed package whose name is taken or invalid, or that cannot be loaded."""


class StrategyMisfit(ModelUpdateError):
    """Raised before anything runs when a strategy has nothing to do with a chunk, or cannot work on the encoder."""


class BadStrategyOption(ModelUpdateError):
    """Raised for an unknown strategy option or a value out of its range."""


class NothingToLearn(ModelUpdateError):
    """Raised when an update has no training pair that its strategy can use."""


class NoFusion(ModelUpdateError):
    """Raised when an encoder has no fusion encoder, or one that learned with other towers."""


class TeacherMoved(ModelUpdateError):
    """Raised when a frozen teacher is not what it was before the update; a fault of the strategy."""


class TrainingDiverged(ModelUpdateError):
    """Raised when a loss or a gradient is not finite; the update ends and nothing is published."""


class VersionDamaged(ModelUpdateError):
    """Raised when a version folder is incomplete or a file differs from its manifest."""


class NeedsLearning(ModelUpdateError):
    """Raised when what was asked for needs torch and what comes with it, and it is not installed."""
