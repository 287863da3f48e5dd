"""What a training script imports: pause, shrink, checkpoints, exact resume and metrics around its own loop.

    from wattline import train

    run = train.start(model=parameters, optimizer=moments, rng=rng, data=sampler)
    for step in run.steps(400):
        batches = [sampler.next() for _ in range(8)]
        for gradient in run.map(compute_gradient, batches):
            ...
        run.log(loss=loss)
    run.report(final_loss=loss)

The same script runs alone: without a control plane there is nothing to ask it to pause. Needs only NumPy
and blake3.
"""

from wattline.train.errors import ScriptError
from wattline.train.results import params
from wattline.train.run import FENCED_EXIT_CODE, PAUSED_EXIT_CODE, Run, report, start

__all__ = [
    "FENCED_EXIT_CODE",
    "PAUSED_EXIT_CODE",
    "Run",
    "ScriptError",
    "params",
    "report",
    "start",
]
