/* SPDX-License-Identifier: Apache-2.0 */
/* protocol.h - between the program that starts a container and aliquot-runner inside it
 *
 * aliquot-runner is PID 1 of a container: it runs the container's program,
 * reaps what nobody else waits for, passes signals on and runs further
 * commands beside the program. It needs nothing from the image.
 *
 *   aliquot-runner [--socket FD] [--report FD] [--uid N] [--gid N]
 *                  [--groups N,N...] [--cwd DIR] [--tty ROWSxCOLS]
 *                  [--oom-score N] [--check FILE] [--bootstrap FD] [--output FILE]
 *                  [--home FOLDER [--home-from FOLDER] [--dotfiles FOLDER]]
 *                  [--ssh FOLDER [--ssh-port PORT] [--ssh-for files] [--ssh-idle SECONDS]]
 *                  [--linger SECONDS]
 *                  [--] [PROGRAM ARGUMENT...]
 *
 * Beside a program that is in no container the monitor starts it without PROGRAM and --report.
 *
 * It starts as root of the container. Programs run with the given ids (in
 * the runner's own without), in the given directory, with the runner's
 * environment; PROGRAM without a slash is looked for in its PATH. Without
 * PROGRAM the container lives until it gets SIGTERM, SIGINT or SIGHUP. With --tty the
 * program gets a terminal of the container's own /dev/pts, whose output goes
 * to the runner's standard output and to attached connections; else its
 * standard output and error are the runner's. --oom-score is what programs
 * get in /proc/self/oom_score_adj [0 if the runner's own is below]. With --bootstrap
 * PROGRAM begins with a bootstrap script, and writes a byte to its descriptor FD when that
 * has succeeded; the monitor hears HELLO once more then. With --output the runner creates FILE for
 * the program before it starts, and its report carries what the program wrote into it.
 *
 * The runner ends when the program does, with its exit code, 128+n after
 * signal n, 127 if there is no such program and 126 if it cannot be executed;
 * the kernel then ends everything else in the container. Signals that another
 * process sends the runner go to the process group of the program; SIGTERM and
 * SIGHUP to those of all further commands too. What the Linux kernel sends it, such
 * as SIGPIPE for a command that has closed its input, goes to nobody.
 *
 * --socket is a listening SOCK_SEQPACKET socket that was bound outside of the
 * container, --report a file open for writing that lies there. No path within
 * the container leads to either, and as the runner is not dumpable, no
 * process there can reach its descriptors without CAP_SYS_PTRACE. Connections
 * from processes of the container are refused.
 *
 * Messages, host byte order, one a packet. Each connection begins with HELLO
 * and is then for one thing: EXEC (one further command), FILES (one of what files.h
 * does, as a command), ATTACH (the program's terminal) or SIGNAL.
 *
 *   EXEC -> STARTED, OUTPUT and ERRORS..., ENDED; or FAILED. INPUT, END_INPUT,
 *   RESIZE and SIGNAL may follow EXEC at once. Nothing is lost either way: who
 *   cannot take more stops reading. A command whose connection is closed gets
 *   SIGHUP. When it ends, what it had written by then is sent, and what its
 *   own children write later is not.
 *
 *   With RUNNER_EXEC_REPORTS, if STARTED confirms it, the client sends one INPUT of up to
 *   RUNNER_FIRST_MAX bytes and waits. TAKEN says that all of it was read and more may come; or,
 *   before ENDED, how much of it was.
 *
 *   ATTACH -> OUTPUT (up to RUNNER_REPLAY_MAX earlier bytes first), SKIPPED
 *   where the reader was too slow for more than the newest RUNNER_REPLAY_MAX bytes,
 *   which come then, ENDED. Only if HELLO says there is a terminal.
 */
#ifndef AQ_RUNNER_PROTOCOL_H
#define AQ_RUNNER_PROTOCOL_H

#include <stdint.h>

#define RUNNER_PROTOCOL 2
#define RUNNER_WITH_FILES 2     /* the first protocol that has FILES */
#define RUNNER_PACKET_MAX 65536 /* bytes of a packet; so of a command and its environment */
#define RUNNER_OUTPUT_MAX \
    32768                     /* bytes of output in a packet, and of input as the agent sends it */
#define RUNNER_FIRST_MAX 4096 /* bytes of a first input that is reported on */
#define RUNNER_REPLAY_MAX 65536    /* bytes of earlier output that ATTACH shows */
#define RUNNER_CONNECTIONS_MAX 512 /* at a time; further ones are closed at once */
#define RUNNER_ARGUMENTS_MAX 4096  /* of a command, as of its variables */
#define RUNNER_TEXT_MAX 160

enum runner_message {
    /* from the runner */
    RUNNER_HELLO = 'h',   /* struct runner_hello */
    RUNNER_STARTED = 'b', /* struct runner_started: the command was executed */
    RUNNER_OUTPUT = 'o',  /* type byte, then standard output or the terminal's;
                             * none: it has ended, before the command */
    RUNNER_ERRORS = 'e',  /* type byte, then standard error */
    RUNNER_TAKEN = 't',   /* struct runner_taken */
    RUNNER_SKIPPED = 's', /* type byte: output was dropped */
    RUNNER_ENDED = 'x',   /* struct runner_ended; then the connection ends */
    RUNNER_FAILED = 'f',  /* struct runner_failed; then the connection ends */
    /* to the runner */
    RUNNER_EXEC = 'E',      /* struct runner_exec and strings */
    RUNNER_FILES = 'F',     /* the same: arguments for files.h */
    RUNNER_ATTACH = 'A',    /* type byte */
    RUNNER_INPUT = 'I',     /* type byte, then bytes for standard input or the terminal */
    RUNNER_END_INPUT = 'D', /* type byte: standard input ends there */
    RUNNER_RESIZE = 'R',    /* struct runner_resize */
    RUNNER_SIGNAL = 'K',    /* struct runner_signal: to the command, else to the program */
};

#define RUNNER_HELLO_IDLE 1u      /* there is no program, only commands */
#define RUNNER_HELLO_BOOTSTRAP 2u /* the bootstrap script has not succeeded yet */

struct runner_hello {
    uint8_t type, protocol, tty, flags;
    int32_t pid; /* of the program, as the container counts; 0 = idle */
    int64_t started_usec;
};

struct runner_started {
    uint8_t type, reports, reserved[2]; /* reports: TAKEN will come */
    int32_t pid;
};

struct runner_taken {
    uint8_t type, is_all, reserved[2]; /* all: the command may want more */
    uint32_t bytes;                    /* of the first input, that were read */
};

struct runner_ended {
    uint8_t type, reserved[3];
    int32_t status; /* of waitpid() */
};

struct runner_failed {
    uint8_t type, reserved[3];
    int32_t code; /* errno; ENOENT = there is no such program */
    char text[RUNNER_TEXT_MAX];
};

#define RUNNER_EXEC_TTY 1u     /* a terminal for all three */
#define RUNNER_EXEC_INPUT 2u   /* INPUT will come; else standard input is empty */
#define RUNNER_EXEC_REPORTS 4u /* say how much of the first input is read */

/* Then 'argc' arguments and 'envc' "NAME=value", each NUL-terminated, and a
 * working directory ("" = --cwd). Without arguments it is a shell: $SHELL, bash
 * or sh, whichever the image has. Variables are added to the runner's own.
 */
struct runner_exec {
    uint8_t type, flags;
    uint16_t rows, cols; /* 0 = 24 x 80 */
    uint16_t argc, envc;
};

struct runner_resize {
    uint8_t type, reserved;
    uint16_t rows, cols;
};

struct runner_signal {
    uint8_t type, reserved[3];
    int32_t signal;
};

#define RUNNER_REPORT_MAGIC 0x41715231u /* "AqR1" */

/* Written to --report once, whole, when the program has ended or could not be
 * started; 'output' bytes of the file --output follow. Without it the runner was killed.
 */
struct runner_report {
    uint32_t magic;
    int32_t status; /* of waitpid(); that of the runner if 'code' is set */
    int32_t code;   /* errno of a start that failed, else 0 */
    int32_t output; /* bytes that follow, at most VALUES_FILE_READ_MAX; or -errno */
    int64_t started_usec, ended_usec; /* wall clock; started is 0 if it never was */
    int64_t user_usec, system_usec;   /* of the program and what it waited for */
    uint64_t max_rss_bytes;
    char text[RUNNER_TEXT_MAX]; /* which step of the start failed, else "" */
};

#endif
