/* SPDX-License-Identifier: Apache-2.0 */
/* protocol.h - the directory and the socket between an agent and a monitor
 *
 * The agent makes a directory with a file 'program' and starts
 * "aliquot-monitor FOLDER [DESCRIPTOR [PROGRAM]]"; the descriptor is one end of a
 * SOCK_SEQPACKET pair and serves as a connection that is there from the
 * start; PROGRAM is a descriptor of what the first arg names, to be executed in
 * its place. In the directory the monitor keeps
 *
 *   lock          flock()ed as long as a monitor is alive
 *   started       what 'program' is called from just before the program starts:
 *                 a program is started at most once per directory. A power failure
 *                 may undo it: nobody starts what was ordered before one
 *   log, log.1    the program's output: newer and older half of a ring
 *   times times.1 when it was written (log_times.h)
 *   monitor.sock  SOCK_SEQPACKET, the messages below, host byte order. There
 *                 from the start with a terminal or input, at once if nobody is
 *                 connected, and else after a second
 *   runner.sock   the runner listens there (runner/protocol.h): process 1 of a container,
 *                 else one that is started for the first command (command_runner.h)
 *   exit.json     the exit record, whole before GONE is sent. It outlives every
 *                 process; who told others of it makes it durable there. A power
 *                 failure in between reads as monitor-lost:
 *                 {"version":1,"kernel_id":"...","reason":"exited","text":"",
 *                  "exit_code":0,"signal":null,"started_at":USEC,"ended_at":USEC,
 *                  "user_usec":N,"system_usec":N,"max_rss_bytes":N,
 *                  "memory_peak_bytes":N,"outputs":{"NAME":"VALUE"}}; exit_code is 128+n for signal n, and
 *                 null when it is not known; the peak of all the container's
 *                 processes together only if there was one; outputs only if the
 *                 program wrote some (base/name_values.h)
 *   exit.tmp      what becomes exit.json
 *
 * A monitor that finds 'started' without 'exit.json' follows one that was
 * killed: it ends what is left of the program and records "monitor-lost".
 * One that finds exit.json does nothing. So whatever state a directory is in,
 * running the monitor once more leads to exit.json.
 *
 * 'program' is a sequence of NUL-terminated strings "key=value":
 *   arg env           in order; the first arg is the path to execute
 *   cwd uid gid       0 or 1 of each
 *   tty rows cols     tty=1: a terminal for standard input, output and error
 *   input             seconds from the start in which FEED may begin to give standard
 *                     input; without it that is empty [0 = at once]
 *   log_max           bytes of the ring [10485760]
 *   timeout_usec      run time after which it is terminated [0 = none]
 *   grace_usec        between SIGTERM and SIGKILL then [10000000]
 *   warn_signal       signal number, sent warn_usec before the run-time limit [0 = none]; at the
 *   warn_usec         start if the limit is shorter than that
 *   notice_signal     signal number, sent before SIGTERM [0 = none]
 *   notice_usec       time from notice_signal to SIGTERM at the run-time limit [0 = at once]
 *   bootstrap_usec    the program begins with a bootstrap script, and writes a byte to descriptor
 *                     MONITOR_BOOTSTRAP_FD when that has succeeded. Clients hear that it runs, with
 *                     MONITOR_HELLO_BOOTSTRAP, and once more then; timeout_usec and 'input' count
 *                     from there. Terminated if the script takes longer; 0 = it may
 *   output            file to create for the program, which writes values into it; a
 *                     container's program has it from the runner
 *   rlimit_NAME       as, core, data, fsize, memlock, nofile, nproc, stack;
 *                     a number or "unlimited"
 * 
 * A container's program is an OCI runtime, which is started in a mount
 * namespace of its own where the root file system is put together (rootfs.h):
 *   stage             empty directory to do that in; makes it a container
 *   layer             directories of the image, topmost first
 *   scratch           directory for what is written, or, with
 *   scratch_template  an image of a file system, a file that is its copy
 *   id_base id_count  users of the container are these of the node [0 0 = the same]
 *   home_uid home_gid who of these gets the directory 'home' [0 0]
 *   home              its path inside; there are entries of both in /etc/passwd
 *                     and /etc/group then
 *   empty             directories inside that begin empty, whatever the layers have there
 *   mounted_file mounted_folder  paths inside that the runtime mounts something at: no
 *                     link is left there (mount_points.h)
 *   mount_volume      begins a mount of a user's folder (volume_mounts.h): the directory of its
 *                     volume on the node, with
 *   mount_folder mount_path  the folder in it and the directory in that ["" = all of it],
 *   mount_name        what messages call the folder,
 *   mount_target      the path inside, and
 *   mount_writable    1: it can be written to [0]
 *   hide              mount points that the runtime must not see
 *   cgroup            directories to make, to run it in, and to remove
 *   outside           1: it is not run in them but makes cgroups of its own below [0]
 *   limit             FILE=VALUE, written in this order once the directories are there
 *   device            "c 1:3 rwm": nodes it may use; for cgroup version 2
 *   runner            1: its process 1 is aliquot-runner (runner_link.h) [0]
 *   runner_file       and runs this file of the node
 *   relays            1: the runtime passes its output on, so it is not over before
 *                     the runtime is [0]
 *   pid_file runtime_log  no longer used
 *   remove            what the runtime may leave behind
 * The environment must contain ALIQUOT_KERNEL_ID=... : what a killed monitor
 * left behind is found by it.
 */
#ifndef AQ_MONITOR_PROTOCOL_H
#define AQ_MONITOR_PROTOCOL_H

#include <stdint.h>

#define MONITOR_PROTOCOL 1
#define MONITOR_SOCKET "monitor.sock"
#define MONITOR_MESSAGE_MAX 16384 /* bytes of a packet */
#define MONITOR_INPUT_MAX 8192    /* bytes of input in it */
#define MONITOR_REPLAY_MAX 65536  /* bytes of earlier output that ATTACH shows */
#define MONITOR_KEPT 2            /* descriptors of KEEP */
#define MONITOR_BOOTSTRAP_FD 3    /* of a program that begins with a bootstrap script */
#define BOOTSTRAP_FD_TEXT "3"
#define MONITOR_EXIT_BUSY 75 /* exit status: another monitor has the directory */

/* "reason" in exit.json */
#define MONITOR_EXITED "exited"
#define MONITOR_SIGNALLED "signalled"
#define MONITOR_TERMINATED "terminated"       /* TERMINATE was asked for before it ended */
#define MONITOR_OUT_OF_MEMORY "out-of-memory" /* failed, and Linux killed at its memory limit */
#define MONITOR_BAD_OUTPUT "bad-output" /* exit status 0, but its values break a rule: "text" */
#define MONITOR_TIMEOUT "task-timeout"
#define MONITOR_BOOTSTRAP_TIMEOUT "bootstrap-timeout"
#define MONITOR_NOT_STARTED "failed-to-start" /* "text" says why */
#define MONITOR_LOST "monitor-lost"
#define MONITOR_LEASE_OVER "lease-over" /* nobody set a later lease in time */

enum monitor_message {
    /* from the monitor */
    MONITOR_HELLO = 'h',  /* struct monitor_hello, first on every connection; again when the
                             bootstrap script has succeeded */
    MONITOR_OUTPUT = 'o', /* type byte, then output; to attached clients */
    MONITOR_SKIPPED =
        's', /* type byte: output was left out, the client is too slow; the newest follows */
    MONITOR_FED = 'b',  /* type byte: the answer to FEED; a refusal closes the connection */
    MONITOR_GONE = 'x', /* type byte: exit.json is there; then the connection ends */
    /* to the monitor */
    MONITOR_TERMINATE = 'T', /* struct monitor_terminate */
    MONITOR_LEASE = 'L',     /* struct monitor_lease; holds until the next, also without clients */
    MONITOR_SIGNAL = 'K',    /* struct monitor_signal, to the process group */
    MONITOR_ATTACH = 'A',    /* type byte: earlier output, then live */
    MONITOR_INPUT = 'I',     /* type byte, then input for the terminal; or, after FEED, for the
                                program. Nothing of it is lost, who sends too much waits */
    MONITOR_FEED = 'N',      /* type byte: this connection gives the standard input, which ends
                                with it. One connection may */
    MONITOR_END_INPUT = 'D', /* type byte: standard input ends there */
    MONITOR_RESIZE = 'R',    /* struct monitor_resize */
    MONITOR_KEEP = 'F',      /* type byte, with MONITOR_KEPT descriptors (SCM_RIGHTS): held open as
                                long as the program runs, in place of earlier ones. A later agent
                                finds them in /proc/PID/fd */
};

/* Process 1 of the container had ended before it was looked at: its program ran, and its socket
 * belongs to another process now.
 */
#define MONITOR_HELLO_OVER 1u
#define MONITOR_HELLO_BOOTSTRAP 2u /* the bootstrap script has not succeeded yet */

struct monitor_hello {
    uint8_t type, protocol, tty, flags;
    int32_t pid; /* of the program */
    int64_t started_usec;
};

struct monitor_terminate {
    uint8_t type, reserved[7];
    int64_t grace_usec;  /* 0 = SIGKILL at once */
    int64_t notice_usec; /* before SIGTERM, from notice_signal or else warn_signal on; 0 = none */
};

struct monitor_lease {
    uint8_t type, reserved[7];
    int64_t until_usec; /* CLOCK_BOOTTIME: SIGTERM then; 0 = never */
    int64_t grace_usec; /* and SIGKILL so much later, whatever else ends it */
};

struct monitor_signal {
    uint8_t type, reserved[3];
    int32_t signal;
};

struct monitor_resize {
    uint8_t type, reserved;
    uint16_t rows, cols;
};

#endif
