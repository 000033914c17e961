"""A slow cable: what a machine sends and gets comes so many milliseconds later.

`python -m command.cluster.slowness FOLDER MACHINE MILLISECONDS`, beside the switch, until SIGTERM.
The kernel can do so itself where it has `netem`, which few have. So the machine's end of the cable
is taken out of the switch, another cable goes in, and every frame is handed from one to the other.
Connections do not notice but by the time.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import select
import signal
import socket
import struct
import sys
import time
from collections import deque
from pathlib import Path

from command.cluster import machines, network

EVERY_PROTOCOL = 3
IGNORE_OUTGOING = (263, 23)
"""`SOL_PACKET` and `PACKET_IGNORE_OUTGOING`: what we send is not to be handed back."""
LARGEST_FRAME = 65_536
MOST_FRAMES = 20_000
"""On their way at a time; what is more is lost, as at a switch."""
ROOM_BYTES = 4 * 1024 * 1024
SIOCETHTOOL, TX_CHECKSUMS_OFF = 0x8946, struct.pack("II", 0x17, 0)
NEW_NETWORK = 0x40000000
WAIT_SECONDS = 0.2


def main(folder: Path, machine: str, milliseconds: int) -> None:
    """Put it between, and hand on."""
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: ended.append(number))
    ours, outer = f"slow-{machine}", f"by-{machine}"
    _let_cards_sum(folder)
    network.change(
        [
            f"link add name {ours} type veth peer name {outer}",
            f"link set {outer} master {network.SWITCH} up",
            f"link set {ours} up promisc on",
            f"link set {machines.link(machine)} nomaster promisc on",
        ]
    )
    try:
        _hand_on(machines.link(machine), ours, milliseconds / 1000, ended)
    finally:
        network.change(
            [
                f"link del {ours}",
                f"link set {machines.link(machine)} promisc off master {network.SWITCH}",
            ]
        )


def _hand_on(one: str, other: str, seconds: float, ended: list[int]) -> None:
    ends = [_opened(one), _opened(other)]
    waiting: deque[tuple[float, bytes, socket.socket]] = deque()
    while not ended:
        pause = min(WAIT_SECONDS, waiting[0][0] - time.monotonic()) if waiting else WAIT_SECONDS
        for each in select.select(ends, [], [], max(0.0, pause))[0]:
            frame = each.recv(LARGEST_FRAME)
            if len(waiting) < MOST_FRAMES:
                to = ends[1] if each is ends[0] else ends[0]
                waiting.append((time.monotonic() + seconds, frame, to))
        while waiting and waiting[0][0] <= time.monotonic():
            _, frame, to = waiting.popleft()
            try:
                to.send(frame)
            except OSError:  # a cable that is out: the frame is lost
                continue


def _opened(interface: str) -> socket.socket:
    found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERY_PROTOCOL))
    found.setsockopt(*IGNORE_OUTGOING, 1)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, ROOM_BYTES)
    found.bind((interface, 0))
    return found


def _let_cards_sum(folder: Path) -> None:
    """Have each machine write its checksums, and no frames larger than those of a network: between
    two ends of one cable the kernel leaves that out, and we are none of them."""
    libc = ctypes.CDLL(None, use_errno=True)
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    for each in machines.NUMBERS:
        there = os.open(folder / each, os.O_RDONLY)
        if libc.setns(there, NEW_NETWORK):
            raise OSError(ctypes.get_errno(), f"cannot look after the card of {each}")
        words = array.array("B", TX_CHECKSUMS_OFF)
        asked = struct.pack("16sP", b"eth0", words.buffer_info()[0])
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, SIOCETHTOOL, asked)
        os.close(there)
    libc.setns(own, NEW_NETWORK)
    os.close(own)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
