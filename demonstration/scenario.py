"""The demonstration from beginning to end, as it is told in the terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from demonstration import checking, objects, plot, replay, scoring, series
from demonstration.board import Board
from demonstration.series import Reading
from demonstration.templates import BANDS, SHOWN, STREAM
from servioticy import terminal, trust
from servioticy.client.follower import Follower
from servioticy.client.rest import Rest
from servioticy.domain.model import StreamRef
from servioticy.settings import Settings
from servioticy.settings.places import api_url, live_url

SECONDS_TO_ARRIVE = 10.0
ROWS = (*SHOWN, *BANDS)
FOLLOWED = tuple((each, each.stream) for each in ROWS) + tuple(
    (each, each.anomalies) for each in BANDS
)
"""The streams of which each update is shown as it comes."""


def play(settings: Settings, speed: float, again: bool, stays: bool = True) -> bool:
    """Make the objects, replay what is not sent yet, show, judge, and say what to try next.

    `stays`: the platform goes on running afterwards. If not, all that it has stored and shown is
    checked; returns whether it is what the series say.
    Raises ServioticyError where the platform does not do its part.
    """
    room, water = list(series.room()), list(series.water())
    made = objects.prepare(settings, again)
    api, ids = objects.rest(settings, made.token), dict(made.ids)
    waiting = [replay.not_sent(api, ids, each) for each in (room, water)]
    _introduce(made.are_new, sum(map(len, waiting)))
    board = Board(ROWS, terminal.console(sys.stdout))
    if any(waiting):
        stop = threading.Event()
        for shown, stream in FOLLOWED:
            on_frame = board.flagged if stream == shown.anomalies else board.seen
            ref = StreamRef(ids[shown.document], stream)
            _watch(settings, made.token, ref, partial(on_frame, shown), api, stop)
        replays = [
            replay.Replay(
                objects.rest(settings, made.token),
                ids,
                readings,
                replay.pause(whole, speed),
                board.sent,
            )
            for readings, whole in zip(waiting, (room, water), strict=True)
        ]
        try:
            _show(replays, board)
            _wait_for_the_last(checking.expected(room, water), board)
        finally:
            board.close()
        stop.set()
        _summarize(board, sum(map(len, waiting)))
    _judge(api, ids, room, water)
    _draw_bands(settings, api, ids, water)
    if not stays:
        return _check(api, ids, room, water, board, made.are_new)
    _what_next(settings, ids)
    return True


def _introduce(are_new: bool, waiting: int) -> None:
    if are_new:
        _say("\nDemonstration: an office room (four devices) and a water main, recorded series")
        _say(
            f"made {len(series.UNITS)} devices and {len(objects.COMPOSITES)} composite objects; "
            f"{waiting} updates go through the API:\n"
        )
    elif waiting:
        _say(f"\nDemonstration: continued where it ended; {waiting} updates are left:\n")
    else:
        _say("\nDemonstration: all updates are stored from last time (once more: --again)\n")


def _watch(
    settings: Settings,
    token: str,
    stream: StreamRef,
    on_frame: Callable[[str], None],
    api: Rest,
    stop: threading.Event,
) -> None:
    """Follow a stream from its last stored update on, so that nothing is missed meanwhile."""
    after = api.last_timestamp(*stream) or 0
    follower = Follower(live_url(settings), stream, token, after, trust.own(settings))

    def follow() -> None:
        for frame in follower.updates(stop):
            on_frame(frame)

    threading.Thread(target=follow, name=f"watch-{stream.stream}", daemon=True).start()


def _show(replays: list[replay.Replay], board: Board) -> None:
    for each in replays:
        each.thread.start()
    while any(each.thread.is_alive() for each in replays):
        board.draw()
        time.sleep(0.05)
    for each in replays:
        if each.error is not None:
            raise each.error


def _wait_for_the_last(wanted: Mapping[tuple[str, str], checking.Updates], board: Board) -> None:
    """The end is when the last of each stream has come, or nothing has for a while."""
    last = {each: max(wanted[each[0].document, each[1]], default=0) for each in FOLLOWED}
    came: list[int] = []
    deadline = 0.0
    while any(board.newest(*each) < last[each] for each in FOLLOWED):
        newest = [board.newest(*each) for each in FOLLOWED]
        if newest != came:  # a slow machine may be far behind what was sent
            came, deadline = newest, time.monotonic() + SECONDS_TO_ARRIVE
        if time.monotonic() > deadline:
            break
        board.draw()
        time.sleep(0.02)
    board.draw(at_once=True)


def _summarize(board: Board, sent: int) -> None:
    median = board.median_milliseconds()
    if median is not None:
        _say(
            f"\n{sent} updates sent; from PUT through a computation to the WebSocket: "
            f"{median:.0f} ms (median)"
        )


def _judge(api: Rest, ids: dict[str, str], room: list[Reading], water: list[Reading]) -> None:
    alarms = scoring.values(api.updates(ids["water_main"], "watch"), "anomaly")
    flow = [(each.timestamp, each.value) for each in water]
    score = scoring.water_score(flow, alarms)
    _say(
        f"water main: {score.found} of {score.known} known segments (three low, one peak), "
        f"{score.false_alarms} false alarms"
    )
    states = scoring.values(api.updates(ids["occupied"], "occupied"), "occupied")
    times = [each.timestamp for each in room if each.device == "co2"]
    score = scoring.occupied_score(times, series.room_annotations(), states)
    _say(
        f"occupied: {score.found} of {score.known} changes that two of five people marked, "
        f"{score.false_alarms} false alarms\n"
        "  (people saw four curves and no word about them: two of their marks are Saturday's\n"
        "  daylight, which comes and goes without any CO2)"
    )


def _draw_bands(settings: Settings, api: Rest, ids: dict[str, str], water: list[Reading]) -> None:
    """Draw what is stored of the bands, and tell where."""
    panels = []
    for each in BANDS:
        stored = api.updates(ids[each.document], each.stream)
        flags = api.updates(ids[each.document], each.anomalies)
        panels.append(plot.Panel(each.label, each.unit, plot.points(stored), plot.times(flags)))
    file = objects.token_file(settings).with_name("bands.svg")
    file.write_text(plot.drawn(panels), "utf-8")
    counts = ", ".join(f"{each.label} {len(each.anomalies)}" for each in panels)
    flow = [(each.timestamp, each.value) for each in water]
    score = scoring.water_score(flow, [(at, True) for at in sorted(panels[-1].anomalies)])
    _say(
        f"bands: values outside are {counts};\n"
        f"  of the water main's they tell {score.found} of {score.known} known segments, "
        f"{score.false_alarms} times something else\n"
        f"  drawn in {_shortest(file)}"
    )


def _check(
    api: Rest,
    ids: dict[str, str],
    room: list[Reading],
    water: list[Reading],
    board: Board,
    shown_whole: bool,
) -> bool:
    """Compare all that is stored, and all that the board has shown, with the series."""
    wrong = []
    for device in series.UNITS:
        sent = {
            each.timestamp: {device: each.value}
            for each in (*room, *water)
            if each.device == device
        }
        stored = api.updates(ids[device], STREAM)
        wrong += [f"{device}: {each}" for each in checking.differences(sent, stored)]
    wanted = checking.expected(room, water)
    for (document, stream), updates in wanted.items():
        stored = api.updates(ids[document], stream)
        wrong += [f"{document} {stream}: {each}" for each in checking.differences(updates, stored)]
    if shown_whole:
        for shown in ROWS:
            (count, value), updates = board.last(shown), wanted[shown.document, shown.stream]
            last = updates[max(updates)][shown.channel]
            if count != len(updates) or not checking.equal(value, last):
                wrong.append(
                    f"{shown.label}: shown are {count} updates, the last {value}, "
                    f"instead of {len(updates)}, the last {last}"
                )
        for shown in BANDS:
            flagged, updates = board.anomalies(shown), wanted[shown.document, shown.anomalies]
            if flagged != len(updates):
                wrong.append(f"{shown.label}: flagged are {flagged} instead of {len(updates)}")
    for each in wrong:
        _say(f"wrong: {each}")
    if not wrong:
        count = sum(map(len, wanted.values()))
        _say(f"checked: {count} updates of {len(wanted)} composite streams are as computed apart")
    return not wrong


def _what_next(settings: Settings, ids: dict[str, str]) -> None:
    api = api_url(settings)
    live = live_url(settings)
    data = f" --data {settings.data}" if settings.data_path.name != "servioticy-data" else ""
    token = _shortest(objects.token_file(settings))
    flow, watch = ids["flow"], ids["water_main"]
    burst = '{"channels":{"flow":{"current-value":12.5}},"lastUpdate":\'$(date +%s)\'}'
    _say(f"""
The platform goes on running until Ctrl-C. Try, in another terminal:
  export SERVIOTICY_TOKEN=$(cat {token})
  servioticy tail {watch} watch{data}
  curl -X PUT -H "Authorization: $SERVIOTICY_TOKEN" -H "Content-Type: application/json" \\
    {api}/{flow}/streams/{STREAM} \\
    -d '{burst}'
  curl -H "Authorization: $SERVIOTICY_TOKEN" {api}/{watch}/streams/watch/lastUpdate
  curl -H "Authorization: $SERVIOTICY_TOKEN" {api}/{ids["occupied"]}/streams/occupied/status
Live: {live}/{watch}/streams/watch/live?access_token=...""")


def _shortest(file: Path) -> Path:
    return file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file


def _say(text: str) -> None:
    print(text, flush=True)
