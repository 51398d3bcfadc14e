/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the command line of aliquot-runner (protocol.h) */
#ifndef AQ_RUNNER_OPTIONS_H
#define AQ_RUNNER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define OPTIONS_GROUPS_MAX 64

struct options {
    int socket, report; /* -1 = none */
    int bootstrap; /* descriptor of the program, for the end of its bootstrap script; -1 = none */
    bool has_uid, has_gid, has_oom_score, tty;
    uid_t uid;
    gid_t gid;
    gid_t groups[OPTIONS_GROUPS_MAX];
    size_t group_count;
    const char *check;     /* program that has to succeed first; NULL = none */
    const char *cwd;       /* NULL = the runner's own */
    const char *home_from; /* directory whose files the user is given; NULL = none */
    const char *dotfiles;  /* the same, in folders by permission, instead of what he has */
    const char *home_to;   /* his directory */
    const char *output;    /* file that the program may write values into; NULL = none */
    const char *ssh;       /* directory of the SSH server; NULL = none */
    uint16_t ssh_port;     /* that it listens on; 0 = 2200 */
    bool is_for_files;     /* it moves files and does nothing else */
    long ssh_idle_sec;     /* without a connection to it, after which to end; 0 = never */
    long linger_sec;       /* unsent.h; 0 = the network does not end with the container */
    uint16_t rows, cols;
    int oom_score;
    char **argv; /* of the program, NULL-terminated; empty = there is none */
};

/* Read 'argv' as main() gets it; 'ret' borrows from it. -EINVAL names the
 * option.
 */
int options_parse(int argc, char **argv, struct options *ret, struct aq_error *err);

#endif
