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

    def move(self, now: float, at: float) -> None:
        """Time goes on from `now` to `at`: all that was decided now is done, so that feeds carry until then
        what they carry now. What a cell that ends by then shows is sampled before anything changes."""
        if self._timeline is None:
            return
        self._note_feeds(self._timeline, now)
        if self._timeline.due(at):
            self._timeline.sample(at, self._sample(self._timeline, at))

    def finish(self, at: float) -> None:
        if self._timeline is not None:
            self._timeline.finish(at, self._sample(self._timeline, at))

    def _note_feeds(self, timeline: Timeline, at: float) -> None:
        """What every feed carries and may carry."""
        for column, feed in enumerate(timeline.layout.feeds):
            carrier = self._truth.carrier(feed.resource)
            timeline.note_cap(column, carrier.cap_watts)
            timeline.note_watts(column, at, carrier.watts)

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
