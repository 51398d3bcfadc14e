# SPDX-License-Identifier: Apache-2.0
"""RestrictAddressFamilies= without systemd: families.py "AF_UNIX AF_INET" PROGRAM WORDS..."""

import ctypes
import errno
import os
import socket
import sys

ALLOW, ERRNO, EQUAL = 0x7fff0000, 0x00050000, 4  # of seccomp.h
FAMILIES = 46  # AF_MAX


class Compare(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64),
                ("b", ctypes.c_uint64)]


def restrict(families):
    """From here on socket(2) fails with EAFNOSUPPORT for all others."""
    lib = ctypes.CDLL("libseccomp.so.2")
    lib.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(lib.seccomp_init(ctypes.c_uint32(ALLOW)))
    call = lib.seccomp_syscall_resolve_name(b"socket")
    for family in set(range(FAMILIES)) - {int(getattr(socket, name)) for name in families}:
        done = lib.seccomp_rule_add_array(context, ctypes.c_uint32(ERRNO | errno.EAFNOSUPPORT), call, 1,
                                          ctypes.byref(Compare(0, EQUAL, family, 0)))
        assert done == 0, done
    assert lib.seccomp_load(context) == 0


if __name__ == "__main__":
    restrict(sys.argv[1].split())
    os.execv(sys.argv[2], sys.argv[2:])
