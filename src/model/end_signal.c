/* SPDX-License-Identifier: Apache-2.0 */
/* end_signal.c - signals that a batch session's program gets before it is ended */
#include "model/end_signal.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cleanup.h"
#include "model/session_spec.h"

#define SIGNALS_MAX 31 /* higher ones are real-time signals without names */

static int end_signal_find(const char *name, size_t len)
{
    if (len > 3 && strncmp(name, "SIG", 3) == 0) {
        name += 3;
        len -= 3;
    }
    for (int number = 1; number <= SIGNALS_MAX; number++) {
        const char *known = sigabbrev_np(number);

        if (known && strlen(known) == len && strncmp(known, name, len) == 0)
            return number;
    }
    return -EINVAL;
}

int end_signal_number(const char *text, size_t len)
{
    size_t digits = strspn(text, "0123456789");
    int number = len && digits == len && len <= 2 ? atoi(text) : end_signal_find(text, len);

    return number < 1 || number > SIGNALS_MAX || number == SIGKILL || number == SIGSTOP ? -EINVAL
                                                                                        : number;
}

static int end_signal_fail(const char *text, struct aq_error *err)
{
    return aq_fail_field(err, EINVAL, "signal",
                         "invalid signal '%.40s': expected a signal such as USR1 or USR1@60, with "
                         "the seconds before the time limit (1 to 86400)",
                         text);
}

int end_signal_parse(const char *text, int *ret_signal, int64_t *ret_before_usec,
                     struct aq_error *err)
{
    const char *at = text;
    char *end = NULL;
    size_t len;
    int number;

    *ret_signal = 0;
    *ret_before_usec = 0;
    if (!text)
        return 0;
    if (at[strspn(at, "BR")] == ':') /* sbatch's: to the shell alone, or before a reservation */
        at = strchr(at, ':') + 1;
    len = strcspn(at, "@");
    number = end_signal_number(at, len);
    if (number < 0)
        return end_signal_fail(text, err);
    *ret_before_usec = END_SIGNAL_BEFORE_DEFAULT_USEC;
    if (at[len] == '@') {
        int64_t seconds = isdigit((unsigned char)at[len + 1]) ? strtoll(at + len + 1, &end, 10) : 0;

        if (seconds < 1 || *end || seconds > END_SIGNAL_TIME_MAX_USEC / USEC_PER_SEC)
            return end_signal_fail(text, err);
        *ret_before_usec = seconds * USEC_PER_SEC;
    }
    *ret_signal = number;
    return 0;
}

int end_signal_check(const struct session_spec *spec, struct aq_error *err)
{
    const char *checkpoint = spec->checkpoint_signal;
    int64_t before;
    int number;

    if (checkpoint && end_signal_number(checkpoint, strlen(checkpoint)) < 0)
        return aq_fail_field(err, EINVAL, "checkpoint_signal",
                             "invalid checkpoint_signal '%.40s': expected a signal such as USR1 or "
                             "TERM, except KILL and STOP",
                             checkpoint);
    if (spec->grace_usec > END_SIGNAL_TIME_MAX_USEC)
        return aq_fail_field(err, EINVAL, "grace", "grace must not exceed a day");
    if (spec->signal && !spec->batch_timeout_usec)
        return aq_fail_field(err, EINVAL, "signal",
                             "signal is sent before the time limit, but this session has none; "
                             "set batch_timeout (--timeout), or use checkpoint_signal");
    return end_signal_parse(spec->signal, &number, &before, err);
}

int64_t end_signal_notice_usec(const struct session_spec *spec, int64_t max_usec)
{
    int64_t wanted = spec->grace_usec ? spec->grace_usec : END_SIGNAL_GRACE_DEFAULT_USEC;

    return spec->checkpoint_signal ? AQ_MIN(wanted, max_usec) : 0;
}

int64_t end_signal_grace_usec(const struct session_spec *spec, int64_t max_usec, int64_t usual_usec)
{
    return spec->checkpoint_signal || !spec->grace_usec ? usual_usec
                                                        : AQ_MIN(spec->grace_usec, max_usec);
}
