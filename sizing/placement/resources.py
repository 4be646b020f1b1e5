"""Resource amounts in manifests: cpu, memory and devices in Kubernetes' syntax."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, PlainSerializer
from pydantic_core import PydanticCustomError

from penstock.sizing.placement.quantities import NANO, nano
from penstock.sizing.units import NotAQuantity

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
EPHEMERAL_STORAGE = "ephemeral-storage"
NODES = "nodes"
NVIDIA_GPU = "nvidia.com/gpu"
AMD_GPU = "amd.com/gpu"
GAUDI = "habana.ai/gaudi"
NEURON = "aws.amazon.com/neuron"
NEURON_CORE = "aws.amazon.com/neuroncore"

# Devices: integers only.
DEVICES = (NVIDIA_GPU, AMD_GPU, GAUDI, NEURON, NEURON_CORE)
RESOURCES = (CPU, MEMORY, PODS, EPHEMERAL_STORAGE, *DEVICES)


def _amount(value: object) -> int:
    try:
        return nano(value)
    except NotAQuantity as fault:
        raise PydanticCustomError("quantity", "{need}", {"need": fault.need, "fix": fault.fix}) from None


def _text_of(amount_nano: int) -> str:
    whole, rest = divmod(amount_nano, NANO)
    return str(whole) if not rest else f"{amount_nano // 10**6}m" if amount_nano % 10**6 == 0 else f"{amount_nano}n"


Amount = Annotated[int, BeforeValidator(_amount), PlainSerializer(_text_of, return_type=str)]


def _check_amounts(amounts: Mapping[str, int]) -> Mapping[str, int]:
    for name, amount in amounts.items():
        if name not in RESOURCES or name == PODS:
            known = ", ".join(resource for resource in RESOURCES if resource != PODS)
            raise PydanticCustomError("not_modelled", "{need}", {"need": f"one of {known}", "given": name})
        if name in DEVICES and amount % NANO:
            raise PydanticCustomError("quantity", "{need}", {"need": f"a whole number of {name}", "fix": "use an integer"})
    return amounts


Amounts = Annotated[dict[str, Amount], AfterValidator(_check_amounts)]
