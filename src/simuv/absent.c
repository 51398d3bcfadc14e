/* SPDX-License-Identifier: Apache-2.0 */
/* absent.c - what simulated hosts do not have: child processes, signals, descriptors and files
 * that tell of changes
 *
 * Handles can be made and closed; nothing ever comes.
 */
#include "simuv/simuv_internal.h"

int uv_spawn(uv_loop_t *loop, uv_process_t *process, const uv_process_options_t *options)
{
    (void)options;
    simuv_handle_init(loop, (uv_handle_t *)process, UV_PROCESS);
    process->pid = 0;
    return UV_ENOSYS;
}

int uv_process_kill(uv_process_t *process, int signal)
{
    (void)process;
    (void)signal;
    return UV_ESRCH;
}

int uv_signal_init(uv_loop_t *loop, uv_signal_t *handle)
{
    simuv_handle_init(loop, (uv_handle_t *)handle, UV_SIGNAL);
    return 0;
}

int uv_signal_start(uv_signal_t *handle, uv_signal_cb fn, int number)
{
    handle->signal_cb = fn;
    handle->signum = number;
    simuv_handle_start((uv_handle_t *)handle);
    return 0;
}

int uv_signal_stop(uv_signal_t *handle)
{
    simuv_handle_stop((uv_handle_t *)handle);
    return 0;
}

int uv_poll_init(uv_loop_t *loop, uv_poll_t *handle, int fd)
{
    simuv_handle_init(loop, (uv_handle_t *)handle, UV_POLL);
    handle->io_watcher.fd = fd;
    return 0;
}

int uv_poll_start(uv_poll_t *handle, int events, uv_poll_cb fn)
{
    (void)events;
    handle->poll_cb = fn;
    simuv_handle_start((uv_handle_t *)handle);
    return 0;
}

int uv_poll_stop(uv_poll_t *handle)
{
    simuv_handle_stop((uv_handle_t *)handle);
    return 0;
}

int uv_fs_event_init(uv_loop_t *loop, uv_fs_event_t *handle)
{
    simuv_handle_init(loop, (uv_handle_t *)handle, UV_FS_EVENT);
    return 0;
}

int uv_fs_event_start(uv_fs_event_t *handle, uv_fs_event_cb fn, const char *path, unsigned flags)
{
    (void)handle;
    (void)fn;
    (void)path;
    (void)flags;
    return UV_ENOSYS;
}

int uv_fs_event_stop(uv_fs_event_t *handle)
{
    (void)handle;
    return 0;
}
