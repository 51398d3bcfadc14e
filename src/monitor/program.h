/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - parses the file 'program' of a run directory (protocol.h) */
#ifndef AQ_MONITOR_PROGRAM_H
#define AQ_MONITOR_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "monitor/sandbox.h"

struct program {
    char **argv, **envp; /* NULL-terminated, pointing into 'text' */
    size_t argc, argv_cap, envc, envp_cap;
    const char *cwd;    /* NULL = the monitor's */
    const char *output; /* file that it may write values into; NULL = none, or the runner's */
    bool tty, has_uid, has_gid;
    uid_t uid;
    gid_t gid;
    uint16_t rows, cols;
    uint64_t log_max;
    int64_t timeout_usec, grace_usec;
    int warn_signal, notice_signal; /* 0 = none */
    int64_t warn_usec, notice_usec;
    bool has_bootstrap;
    int64_t bootstrap_usec; /* 0 = no limit */
    int64_t input_sec;      /* 0 = there is no standard input */
    struct {
        int resource;
        struct rlimit value;
    } limits[8];
    size_t limit_count;
    struct sandbox sandbox;
    struct strbuf text;
};

/* Read 'program' below 'directory', or what it became. -EINVAL with field = the key. */
int program_read(int directory, struct program *ret, struct aq_error *err);

/* The same from bytes, which 'ret' takes over. */
int program_parse(struct strbuf *text, struct program *ret, struct aq_error *err) AQ_UNTRUSTED;
void program_done(struct program *program);

/* The whole "ALIQUOT_KERNEL_ID=..." of the environment, or NULL. */
const char *program_marker(const struct program *program);
/* The part of it after the name, or NULL. */
const char *program_kernel_id(const struct program *program);

#endif
