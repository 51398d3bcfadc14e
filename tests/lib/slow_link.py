# SPDX-License-Identifier: Apache-2.0
"""A cable with delays, between a host's port and a TAP device that is made here.

    slow_link.py PORT TAP

Standard input has lines "MAC MILLISECONDS": what goes to or comes from that
address is late by so much; a time of 0 ends it. All other frames pass at once.
Says "ready" when the device is there. Ends with its input.
"""

import fcntl
import heapq
import itertools
import os
import select
import socket
import struct
import sys
import time

ETH_P_ALL = 3
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
PACKET_OUTGOING = 4
FRAME_MAX = 1 << 16


def open_port(name):
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    port.bind((name, 0))
    return port


def open_tap(name):
    tap = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP | IFF_NO_PI))
    return tap


class Link:
    def __init__(self, port, tap):
        self.port, self.tap = port, tap
        self.delays, self.late, self.order = {}, [], itertools.count()

    def read_command(self):
        line = sys.stdin.readline().split()
        if line:
            self.delays[bytes.fromhex(line[0].replace(":", ""))] = float(line[1]) / 1000
        return bool(line)

    def from_host(self):
        frame, address = self.port.recvfrom(FRAME_MAX)
        if address[2] != PACKET_OUTGOING:  # else our own words to the host
            self.pass_on(frame, frame[:6], lambda: os.write(self.tap, frame))

    def to_host(self):
        frame = os.read(self.tap, FRAME_MAX)
        self.pass_on(frame, frame[6:12], lambda: self.port.send(frame))

    def pass_on(self, frame, other, write):
        if delay := self.delays.get(frame and other):
            heapq.heappush(self.late, (time.monotonic() + delay, next(self.order), write))
        else:
            self.write(write)

    @staticmethod
    def write(write):
        try:
            write()
        except OSError:
            pass  # the other end is down or full: a frame is lost, as on a wire

    def write_due(self):
        """What is due; the time until more is, or None."""
        while self.late and self.late[0][0] <= time.monotonic():
            self.write(heapq.heappop(self.late)[2])
        return max(0, self.late[0][0] - time.monotonic()) if self.late else None

    def run(self):
        while True:
            ready = select.select([sys.stdin, self.port, self.tap], [], [], self.write_due())[0]
            if sys.stdin in ready and not self.read_command():
                return
            if self.port in ready:
                self.from_host()
            if self.tap in ready:
                self.to_host()


def main():
    link = Link(open_port(sys.argv[1]), open_tap(sys.argv[2]))
    print("ready", flush=True)
    link.run()


main()
