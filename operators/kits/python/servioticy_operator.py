"""The kit for operators in Python: events in, updates out. Needs nothing but Python 3.9.

from servioticy_operator import serve

def hot(event, state):
    state.put("count", state.get("count", 0) + 1)
    if event.value("temperature") > 30:
        yield {"alarms": state.get("count")}
serve(hot)
"""

import json
import os
import socket
import struct


class State:
    """What the composite keeps: at most 64 KiB of JSON, committed with the batch or not at all."""

    def __init__(self, values):
        self._values, self.is_changed = values or {}, False

    def get(self, key, default=None):
        return self._values.get(key, default)

    def put(self, key, value):
        self._values[key], self.is_changed = value, True

    def drop(self, key):
        self.is_changed |= self._values.pop(key, None) is not None

    def all(self):
        return self._values


class Event:
    """An update that has come: stream, timestamp, channels, version, correlation."""

    def __init__(self, composite, state, content):
        self.composite, self.state, self.outputs = composite, state, []
        self.__dict__.update(content)

    def value(self, channel, default=None):
        return self.channels.get(channel, default)


def serve(each=None, batch=None):
    """Answer until the platform ends us.

    `each(event, state)` returns None, yields or returns updates: `{channel: value}`, or a tuple
    that ends so, before it another timestamp than the event's, a stream's name, or both.
    `batch(events)` has all that have come together, of several composites, and appends to
    `event.outputs`. What either raises is the error of its question: nothing of it is kept.
    """
    connection = socket.socket(fileno=int(os.environ["SERVIOTICY_OPERATOR"]))
    stream = connection.makefile("rb")
    _send(connection, {"ready": True})
    while len(head := stream.read(4)) == 4:
        asked = json.loads(stream.read(struct.unpack(">I", head)[0]))["questions"]
        _send(connection, {"replies": _replies(asked, each, batch)})


def _replies(asked, each, batch):
    questions = []
    for one in asked:
        state = State(one["state"])
        events = [Event(one["composite"], state, content) for content in one["events"]]
        questions.append((one["id"], state, events))
    try:
        if batch is not None:
            batch([event for _, _, events in questions for event in events])
    except Exception as error:  # whose fault it is cannot be told: all of it is asked again
        return [{"id": name, "error": _said(error)} for name, _, _ in questions]
    return [_reply(name, state, events, each) for name, state, events in questions]


def _reply(name, state, events, each):
    outputs = []
    try:
        for number, event in enumerate(events):
            made = event.outputs if each is None else each(event, state)
            for update in [made] if isinstance(made, (dict, tuple)) else made or ():
                *to, made = update if isinstance(update, tuple) else (update,)
                named = {"stream" if isinstance(each, str) else "timestamp": each for each in to}
                outputs.append({"event": number, "channels": made, **named})
        kept = {"state": state.all() or None} if state.is_changed else {}
        return {"id": name, "outputs": outputs, **kept}
    except Exception as error:
        return {"id": name, "error": _said(error)}


def _said(error):
    return f"{type(error).__name__}: {error}"


def _send(connection, message):
    body = json.dumps(message, separators=(",", ":")).encode()
    connection.sendall(struct.pack(">I", len(body)) + body)
