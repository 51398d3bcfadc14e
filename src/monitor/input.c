/* SPDX-License-Identifier: Apache-2.0 */
/* input.c - the standard input of a program: a pipe that one client fills */
#include "monitor/input.h"

#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"

void input_open(struct input *input, int pipe, int64_t wait_sec)
{
    const struct itimerspec when = { .it_value = { .tv_sec = wait_sec } };

    input->pipe = pipe;
    if (pipe < 0)
        return;
    input->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (input->timer < 0 || timerfd_settime(input->timer, 0, &when, NULL) < 0)
        input_close(input); /* better none than one that may never end */
}

void input_close(struct input *input)
{
    aq_closep(&input->pipe);
    aq_closep(&input->timer);
    input->len = input->at = 0;
}

bool input_is_awaited(const struct input *input)
{
    return input->pipe >= 0 && input->slot < 0;
}

bool input_take(struct input *input, int slot)
{
    if (!input_is_awaited(input))
        return false;
    input->slot = slot;
    aq_closep(&input->timer);
    return true;
}

/* A program that has closed its input needs no more of it. */
bool input_write(struct input *input)
{
    while (input->pipe >= 0 && input->at < input->len) {
        ssize_t put = write(input->pipe, input->held + input->at, input->len - input->at);

        if (put < 0 && errno == EAGAIN)
            return false;
        if (put < 0 && errno != EINTR)
            input_close(input);
        if (put > 0)
            input->at += (size_t)put;
    }
    input->len = input->at = 0;
    if (input->is_ending)
        input_close(input);
    return true;
}

bool input_give(struct input *input, const char *bytes, size_t len)
{
    if (input->pipe < 0 || input->is_ending || len > sizeof(input->held))
        return true;
    memcpy(input->held, bytes, len);
    input->len = len;
    return input_write(input);
}

void input_end(struct input *input)
{
    input->is_ending = true;
    (void)input_write(input);
}
