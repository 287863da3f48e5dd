"""Recorder: writes what the truth shows into a timeline, where somebody wants one."""

from __future__ import annotations

import math

from wattline.twin.timeline import Count, Sample, Timeline
from wattline.twin.truth import Truth


class Recorder:
    """Without a timeline it does nothing."""

    __slots__ = ("_timeline", "_truth")

    def __init__(self, timeline: Timeline | None, truth: Truth) -> None:
        self._timeline, self._truth = timeline, truth

    def note(self, count: Count, at: float, value: float) -> None:
        if self._timeline is not None:
            self._timeline.note_count(count, at, value)

    def note_feeds(self, at: float) -> None:
        """What every feed carries and may carry."""
        if self._timeline is None:
            return
        for column, feed in enumerate(self._timeline.layout.feeds):
            carrier = self._truth.carrier(feed.resource)
            self._timeline.note_watts(column, at, carrier.watts)
            self._timeline.note_cap(column, carrier.cap_watts)

    def move(self, at: float) -> None:
        """Time goes on to `at`; what a cell that ends by then shows is sampled first."""
        if self._timeline is not None and self._timeline.due(at):
            self._timeline.sample(at, self._sample(self._timeline, at))

    def finish(self, at: float) -> None:
        if self._timeline is not None:
            self._timeline.finish(at, self._sample(self._timeline, at))

    def _sample(self, timeline: Timeline, at: float) -> Sample:
        layout = timeline.layout
        spent = [self._truth.spent_by(site, at) for site in layout.sites]
        hottest = [-math.inf] * len(layout.places)
        for node, place in enumerate(layout.place_of_node):
            if place >= 0:
                hottest[place] = max(hottest[place], self._truth.node_celsius(node, at))
        return Sample(
            place_celsius=tuple(hottest),
            site_usd=tuple([usd for usd, _ in spent]),
            site_kg=tuple([kg for _, kg in spent]),
        )
