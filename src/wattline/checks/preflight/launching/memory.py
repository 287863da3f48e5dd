"""How much of a GPU's memory does one rank of a launch need, at least?

Weights, gradients and optimizer state by bytes for each parameter, and sharding over data-parallel ranks:
Rajbhandari et al., ZeRO (https://arxiv.org/abs/1910.02054, section 3.1): mixed precision with Adam keeps
2 + 2 + 12 bytes. Activations of a transformer layer: Korthikanti et al., Reducing Activation Recomputation
in Large Transformer Models (https://arxiv.org/abs/2205.05198, section 4): s·b·h·34 bytes in 16 bits without
the attention scores, which fused kernels do not keep, divided by t under tensor and sequence parallelism;
2·s·b·h for the input of a layer that is computed again.

This is the least: the CUDA context, kernels' workspace, the output layer's logits, communication buffers and
fragmentation come on top, often a tenth. Above 100 % a launch cannot fit; above 90 % it may not.
"""

from __future__ import annotations

from dataclasses import dataclass

from wattline.spec.preparation import Launch

_GIB = 2.0**30
_WEIGHT_BYTES = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 2.0}  # fp8 trains 16-bit weights
_MOMENT_BYTES = {"adamw": 8.0, "sgd": 4.0, "none": 0.0}
_MASTER_BYTES = {"fp32": 0.0, "bf16": 4.0, "fp16": 4.0, "fp8": 4.0}
_ACTIVATION_SCALE = {"fp32": 2.0, "bf16": 1.0, "fp16": 1.0, "fp8": 0.5}  # against 16 bits
_LAYER_FACTOR = 34.0
_INPUT_FACTOR = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What one rank holds, in GiB; activations are None where the launch does not say their shape."""

    weights_gib: float
    gradients_gib: float
    optimizer_gib: float
    activations_gib: float | None

    @property
    def total_gib(self) -> float:
        return self.weights_gib + self.gradients_gib + self.optimizer_gib + (self.activations_gib or 0.0)

    def __str__(self) -> str:
        parts = [
            (self.weights_gib, "weights"),
            (self.gradients_gib, "gradients"),
            (self.optimizer_gib, "optimizer"),
            (self.activations_gib or 0.0, "activations"),
        ]
        listed = " + ".join(f"{gib:.1f} {name}" for gib, name in parts if gib)
        unsaid = "" if self.activations_gib is not None else " without activations"
        return f"at least {self.total_gib:.1f} GiB{unsaid} ({listed})"

    def advice(self, launch: Launch, *, data_parallel: int) -> str:
        """What helps against the largest part, of what is not done yet."""
        activations_gib = self.activations_gib or 0.0
        if activations_gib > self.total_gib / 2:
            if launch.recompute == "none":
                return "recompute: full keeps only the input of each layer; or a smaller micro_batch"
            return "a smaller micro_batch, a shorter sequence or more tensor_parallel"
        if launch.sharding != "all" and data_parallel > 1:
            return f"sharding: all divides weights, gradients and optimizer state by {data_parallel}"
        return "more GPUs with a higher tensor_parallel or pipeline_parallel, or a GPU with more memory"


def estimate_memory(launch: Launch, *, data_parallel: int) -> Memory | None:
    """None where the number of parameters is not said."""
    if launch.parameters is None:
        return None
    parameters = launch.parameters / (launch.tensor_parallel * launch.pipeline_parallel)
    trains = launch.optimizer != "none"
    weight_bytes = _WEIGHT_BYTES[launch.precision]
    gradient_bytes = weight_bytes if trains else 0.0
    optimizer_bytes = _MOMENT_BYTES[launch.optimizer] + _MASTER_BYTES[launch.precision] if trains else 0.0
    shards = {"none": 0, "optimizer": 1, "gradients": 2, "all": 3}[launch.sharding]
    return Memory(
        weights_gib=parameters * weight_bytes / (data_parallel if shards >= 3 else 1) / _GIB,
        gradients_gib=parameters * gradient_bytes / (data_parallel if shards >= 2 else 1) / _GIB,
        optimizer_gib=parameters * optimizer_bytes / (data_parallel if shards >= 1 else 1) / _GIB,
        activations_gib=_activations_gib(launch, data_parallel) if trains else 0.0,
    )


def _activations_gib(launch: Launch, data_parallel: int) -> float | None:
    if not (launch.layers and launch.hidden and launch.sequence and launch.micro_batch):
        return None
    tokens = launch.sequence * launch.micro_batch * launch.hidden * _ACTIVATION_SCALE[launch.precision]
    layer_bytes = tokens * _LAYER_FACTOR / launch.tensor_parallel
    layers = launch.layers / launch.pipeline_parallel
    # The first stage of a pipeline holds one micro-batch for each stage behind it.
    in_flight = launch.pipeline_parallel
    if launch.global_batch is not None:
        in_flight = min(in_flight, max(1, launch.global_batch // (launch.micro_batch * data_parallel)))
    if launch.recompute == "full":
        kept = tokens * _INPUT_FACTOR / launch.tensor_parallel * layers * in_flight
        return (kept + layer_bytes) / _GIB
    return layer_bytes * layers * in_flight / _GIB
