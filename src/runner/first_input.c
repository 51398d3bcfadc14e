/* SPDX-License-Identifier: Apache-2.0 */
/* first_input.c - how much of the first piece of its input a command has read */
#include "runner/first_input.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#define FIRST_INPUT_PAGE 1      /* bytes, rounded up */
#define FIRST_INPUT_USUAL 65536 /* of pipe(7) */

void first_input_begin(struct first_input *first, int pipe)
{
    *first = (struct first_input){ .is_awaited = fcntl(pipe, F_SETPIPE_SZ, FIRST_INPUT_PAGE) > 0 };
}

static size_t first_input_left(int pipe)
{
    int left = 0;

    return ioctl(pipe, FIONREAD, &left) == 0 && left > 0 ? (size_t)left : 0;
}

bool first_input_is_pending(const struct first_input *first)
{
    return first->is_awaited && first->given && !first->is_shut;
}

bool first_input_is_read(struct first_input *first, int pipe, bool has_reader)
{
    first->is_shut = !has_reader;
    return has_reader && first_input_left(pipe) == 0;
}

size_t first_input_end(struct first_input *first, int pipe)
{
    size_t left = first_input_left(pipe);

    first->is_awaited = false;
    (void)fcntl(pipe, F_SETPIPE_SZ, FIRST_INPUT_USUAL);
    return left < first->given ? first->given - left : 0;
}
