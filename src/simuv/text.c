/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - libuv's functions of values alone: errors as text, addresses, buffers, threads' names */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "simuv/simuv_internal.h"

const char *uv_strerror(int error)
{
    switch (error) {
#define TEXT_OF_ERROR(name, text) \
    case UV_##name:               \
        return text;
        UV_ERRNO_MAP(TEXT_OF_ERROR)
#undef TEXT_OF_ERROR
    default:
        return "unknown system error";
    }
}

const char *uv_err_name(int error)
{
    switch (error) {
#define TEXT_OF_NAME(name, text) \
    case UV_##name:              \
        return #name;
        UV_ERRNO_MAP(TEXT_OF_NAME)
#undef TEXT_OF_NAME
    default:
        return "UNKNOWN";
    }
}

uv_buf_t uv_buf_init(char *base, unsigned len)
{
    return (uv_buf_t){ .base = base, .len = len };
}

int uv_ip4_addr(const char *ip, int port, struct sockaddr_in *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->sin_family = AF_INET;
    ret->sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, ip, &ret->sin_addr) == 1 ? 0 : UV_EINVAL;
}

/* Without a zone: the network has no IPv6, so no interface that one could name. */
int uv_ip6_addr(const char *ip, int port, struct sockaddr_in6 *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->sin6_family = AF_INET6;
    ret->sin6_port = htons((uint16_t)port);
    return inet_pton(AF_INET6, ip, &ret->sin6_addr) == 1 ? 0 : UV_EINVAL;
}

int uv_ip_name(const struct sockaddr *address, char *into, size_t size)
{
    const void *bytes =
        address->sa_family == AF_INET
            ? (const void *)&((const struct sockaddr_in *)(const void *)address)->sin_addr
            : &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;

    if (address->sa_family != AF_INET && address->sa_family != AF_INET6)
        return UV_EAFNOSUPPORT;
    return inet_ntop(address->sa_family, bytes, into, (socklen_t)size) ? 0 : UV_ENOSPC;
}

/* ---- threads ---- */

struct simuv_thread_call {
    uv_thread_cb fn;
    void *data;
};

static void *text_run_thread(void *data)
{
    struct simuv_thread_call call = *(struct simuv_thread_call *)data;

    free(data);
    call.fn(call.data);
    return NULL;
}

int uv_thread_create(uv_thread_t *ret, uv_thread_cb fn, void *data)
{
    struct simuv_thread_call *call = aq_alloc(sizeof(*call));
    int error;

    *call = (struct simuv_thread_call){ fn, data };
    error = pthread_create(ret, NULL, text_run_thread, call);
    if (error)
        free(call);
    return -error;
}

int uv_thread_join(uv_thread_t *thread)
{
    return -pthread_join(*thread, NULL);
}

uv_thread_t uv_thread_self(void)
{
    return pthread_self();
}

int uv_thread_equal(const uv_thread_t *a, const uv_thread_t *b)
{
    return pthread_equal(*a, *b);
}
