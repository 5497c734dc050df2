"""Which tensors an ONNX file does not hold, read from the bytes as any reader of protobuf may take them.

A search for the bytes that a writer would write is not enough: protobuf lets a length or a tag be written in more bytes
than it needs. Fields by number: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

from collections.abc import Iterator

_MOST_FIELDS = 2_000_000
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# The messages through which one comes to a tensor, each with its fields that hold such a message again.
_WITHIN: dict[str, dict[int, str]] = {
    "model": {7: "whole", 20: "training", 25: "function"},
    "whole": {1: "node", 5: "initializer", 15: "sparse"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "initializer": {},
    "tensor": {},
}
_NAME, _EXTERNAL_DATA, _DATA_LOCATION = 8, 13, 14  # of a tensor


def elsewhere(model: bytes) -> list[str]:
    """Returns the names of a model's own initializers whose numbers are not in it, as often as they stand there.

    Raises:
        ValueError: these are no bytes of a model, or of one with more fields than any needs; or another tensor is
            elsewhere, which nobody can give by its name.
    """
    names = []
    waiting, seen = [("model", memoryview(model))], 0
    while waiting:
        kind, message = waiting.pop()
        is_elsewhere, own = False, []
        for number, value in _fields(message):
            seen += 1
            if seen > _MOST_FIELDS:
                raise ValueError("it has too many fields")
            if kind in ("initializer", "tensor"):
                is_elsewhere |= number == _EXTERNAL_DATA or (number == _DATA_LOCATION and value != 0)
                if number == _NAME and isinstance(value, memoryview):
                    own.append(bytes(value).decode())
            within = _WITHIN[kind].get(number)
            if within is not None and isinstance(value, memoryview):
                waiting.append((within, value))
        if is_elsewhere:
            if kind == "tensor" or len(own) != 1:
                raise ValueError("it has numbers in another file")
            names += own
    return names


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yields number and value of each field: an integer, or bytes."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        value: int | memoryview
        if kind == _VARINT:
            value, at = _varint(message, at)
        elif kind in (_FIXED64, _BYTES, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
            if kind == _BYTES:
                size, at = _varint(message, at)
            value, at = message[at : at + size], at + size
        else:
            raise ValueError(f"a field is of kind {kind}")
        if at > len(message) or not 0 < number < 1 << 29:
            raise ValueError("a field is cut off, or has no number")
        yield number, value


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """Returns an integer and where it ends; one of more bytes than it needs is one, too."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            break
        byte = message[at]
        value, at = value | (byte & 0x7F) << shift, at + 1
        if byte < 0x80:
            return value, at
    raise ValueError("a number is cut off")
