/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - the command line of aliquot-runner (protocol.h) */
#include "runner/options.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* A whole number from 'min' to 'max' up to one of 'ends' (or the string's). */
static int options_parse_number(const char *text, const char *ends, long min, long max, long *ret,
                                const char **ret_end)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    if (errno || end == text || (*end && !strchr(ends, *end)) || value < min || value > max)
        return -EINVAL;
    *ret = value;
    *ret_end = end;
    return 0;
}

static int options_set_number(const char *value, long min, long max, long *ret)
{
    const char *end;

    return options_parse_number(value, "", min, max, ret, &end);
}

static int options_set_size(const char *value, struct options *o)
{
    long rows, cols;
    const char *end;

    if (options_parse_number(value, "x", 1, UINT16_MAX, &rows, &end) < 0 || *end != 'x'
        || options_set_number(end + 1, 1, UINT16_MAX, &cols) < 0)
        return -EINVAL;
    o->tty = true;
    o->rows = (uint16_t)rows;
    o->cols = (uint16_t)cols;
    return 0;
}

static int options_set_groups(const char *value, struct options *o)
{
    long group;

    for (o->group_count = 0; *value; value += *value == ',') {
        if (o->group_count == OPTIONS_GROUPS_MAX
            || options_parse_number(value, ",", 0, UINT32_MAX - 1, &group, &value) < 0)
            return -EINVAL;
        o->groups[o->group_count++] = (gid_t)group;
    }
    return 0;
}

static int options_set_option(struct options *o, const char *name, const char *value)
{
    long n = 0;
    int r = 0;

    if (strcmp(name, "--socket") == 0) {
        r = options_set_number(value, STDERR_FILENO + 1, INT32_MAX, &n);
        o->socket = (int)n;
    } else if (strcmp(name, "--report") == 0) {
        r = options_set_number(value, STDERR_FILENO + 1, INT32_MAX, &n);
        o->report = (int)n;
    } else if (strcmp(name, "--bootstrap") == 0) {
        r = options_set_number(value, STDERR_FILENO + 1, 9, &n); /* one digit, as shells want */
        o->bootstrap = (int)n;
    } else if (strcmp(name, "--uid") == 0) {
        r = options_set_number(value, 0, UINT32_MAX - 1, &n);
        o->uid = (uid_t)n;
        o->has_uid = true;
    } else if (strcmp(name, "--gid") == 0) {
        r = options_set_number(value, 0, UINT32_MAX - 1, &n);
        o->gid = (gid_t)n;
        o->has_gid = true;
    } else if (strcmp(name, "--oom-score") == 0) {
        r = options_set_number(value, -1000, 1000, &n);
        o->oom_score = (int)n;
        o->has_oom_score = true;
    } else if (strcmp(name, "--groups") == 0) {
        r = options_set_groups(value, o);
    } else if (strcmp(name, "--tty") == 0) {
        r = options_set_size(value, o);
    } else if (strcmp(name, "--cwd") == 0 && value[0] == '/') {
        o->cwd = value;
    } else if (strcmp(name, "--home-from") == 0 && value[0] == '/') {
        o->home_from = value;
    } else if (strcmp(name, "--dotfiles") == 0 && value[0] == '/') {
        o->dotfiles = value;
    } else if (strcmp(name, "--home") == 0 && value[0] == '/') {
        o->home_to = value;
    } else if (strcmp(name, "--ssh") == 0 && value[0] == '/') {
        o->ssh = value;
    } else if (strcmp(name, "--ssh-port") == 0) {
        r = options_set_number(value, 1, UINT16_MAX, &n);
        o->ssh_port = (uint16_t)n;
    } else if (strcmp(name, "--linger") == 0) {
        r = options_set_number(value, 0, 60, &o->linger_sec);
    } else if (strcmp(name, "--ssh-for") == 0 && strcmp(value, "files") == 0) {
        o->is_for_files = true;
    } else if (strcmp(name, "--ssh-idle") == 0) {
        r = options_set_number(value, 0, INT32_MAX / 1000, &o->ssh_idle_sec);
    } else if (strcmp(name, "--output") == 0 && value[0] == '/') {
        o->output = value;
    } else if (strcmp(name, "--check") == 0 && value[0] == '/') {
        o->check = value;
    } else {
        r = -EINVAL;
    }
    return r;
}

int options_parse(int argc, char **argv, struct options *ret, struct aq_error *err)
{
    struct options o = { .socket = -1, .report = -1, .bootstrap = -1, .argv = argv + argc };
    int at = 1;

    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        if (strcmp(argv[at], "--") == 0) {
            at++;
            break;
        }
        if (at + 1 == argc || options_set_option(&o, argv[at], argv[at + 1]) < 0)
            return aq_fail_field(err, EINVAL, argv[at], "'%s %s' is no option of the runner",
                                 argv[at], at + 1 == argc ? "" : argv[at + 1]);
    }
    if ((o.home_from == NULL && o.dotfiles == NULL) != (o.home_to == NULL))
        return aq_fail_field(err, EINVAL, "--home",
                             "--home and --home-from or --dotfiles go together");
    if (at < argc)
        o.argv = argv + at;
    *ret = o;
    return 0;
}
