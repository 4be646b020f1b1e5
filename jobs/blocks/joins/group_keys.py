"""Group keys for the copies of a table: the same whatever the number of state partitions, and assigned to them round-robin.

State is looked up by its group key, and Spark keeps a checkpoint's number of state partitions while the session's may change with the
job's parallelism. So the keys depend on the number of copies alone. The partition of a key is its hash modulo the number of partitions;
the key of copy 3 has the hash 3, so the copies are spread as evenly as possible over any number of partitions.

Spark's hash is 32-bit MurmurHash3 with the seed 42 over the text's bytes (org.apache.spark.unsafe.hash.Murmur3_x86_32, Spark 4.3.0).
Each of its steps is invertible, so the second half of a text of eight letters follows from its first half and its hash.
"""

from __future__ import annotations

_SEED = 42
_LENGTH = 8
_32_BITS = 0xFFFFFFFF
_BLOCK_1, _BLOCK_2 = 0xCC9E2D51, 0x1B873593
_STEP, _ADDED = 5, 0xE6546B64
_END_1, _END_2 = 0x85EBCA6B, 0xC2B2AE35
# The inverse of a 32-bit multiplication.
_BY_BLOCK_1, _BY_BLOCK_2, _BY_STEP, _BY_END_1, _BY_END_2 = (pow(by, -1, 1 << 32) for by in (_BLOCK_1, _BLOCK_2, _STEP, _END_1, _END_2))


def group_keys(copies: int) -> list[str]:
    """The keys of the copies, as text: those with the hashes 0, 1, 2 and so on."""
    return [_with_hash(number) for number in range(copies)]


def _with_hash(wanted: int) -> str:
    """The first text of eight letters and digits with a given hash."""
    mixed = _before_the_second_block(wanted)
    for number in range(1 << 16):
        first = f"{number:04x}".encode()
        text = first + _block(mixed ^ _after_the_first_block(first))
        if text.isalnum():
            return text.decode()
    raise AssertionError(f"no text has the hash {wanted}")


def _after_the_first_block(block: bytes) -> int:
    number = int.from_bytes(block, "little") * _BLOCK_1 & _32_BITS
    number = _SEED ^ _turned(number, 15) * _BLOCK_2 & _32_BITS
    return _turned(number, 13) * _STEP + _ADDED & _32_BITS


def _before_the_second_block(hash: int) -> int:
    """The second block after mixing, xor the state after the first: computed backwards from the hash."""
    number = (hash ^ hash >> 16) * _BY_END_2 & _32_BITS
    number = (number ^ number >> 13 ^ number >> 26) * _BY_END_1 & _32_BITS
    number = number ^ number >> 16 ^ _LENGTH
    return _turned((number - _ADDED) * _BY_STEP & _32_BITS, 32 - 13)


def _block(mixed: int) -> bytes:
    number = _turned(mixed * _BY_BLOCK_2 & _32_BITS, 32 - 15)
    return (number * _BY_BLOCK_1 & _32_BITS).to_bytes(4, "little")


def _turned(number: int, bits: int) -> int:
    return (number << bits | number >> (32 - bits)) & _32_BITS
