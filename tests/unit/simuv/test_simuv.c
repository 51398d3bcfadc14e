/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "simuv/simuv.h"

static simuv_host a, b;
static int fired, msgs;
static uv_loop_t la, lb;
static uv_timer_t t;
static uv_tcp_t server, client, conn;
static uv_connect_t creq;
static char buf[65536];

static void on_timer(uv_timer_t *timer)
{
    (void)timer;
    fired++;
}
static void on_alloc(uv_handle_t *h, size_t n, uv_buf_t *r)
{
    (void)h; (void)n;
    *r = uv_buf_init(buf, sizeof(buf));
}
static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *bf)
{
    (void)bf;
    printf("# read %zd at %ld\n", n, (long)simuv_now_usec());
    if (n < 0) uv_close((uv_handle_t *)s, NULL);
    msgs++;
}
static void on_conn(uv_stream_t *s, int status)
{
    (void)status;
    uv_tcp_init(&la, &conn);
    assert_int_equal(uv_accept(s, (uv_stream_t *)&conn), 0);
    uv_read_start((uv_stream_t *)&conn, on_alloc, on_read);
}
static void on_connected(uv_connect_t *req, int status)
{
    uv_buf_t x = uv_buf_init((char *)(uintptr_t)"hello world", 11);
    printf("# connected %d\n", status);
    printf("# wrote %d\n", uv_try_write(req->handle, &x, 1));
}
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int go;
static void *thr(void *d)
{
    pthread_mutex_lock(&m);
    while (!go) pthread_cond_wait(&c, &m);
    pthread_mutex_unlock(&m);
    usleep(1000000);
    printf("# thread at %ld\n", (long)simuv_now_usec());
    return d;
}
static void test_all(void **state)
{
    struct sockaddr_in at;
    pthread_t th;
    (void)state;
    simuv_begin(1);
    a = simuv_add_host("10.0.0.1");
    b = simuv_add_host("10.0.0.2");
    simuv_enter(a);
    uv_loop_init(&la);
    uv_timer_init(&la, &t);
    uv_timer_start(&t, on_timer, 1000, 1000);
    uv_tcp_init(&la, &server);
    uv_ip4_addr("0.0.0.0", 80, &at);
    assert_int_equal(uv_tcp_bind(&server, (struct sockaddr *)&at, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&server, 10, on_conn), 0);
    pthread_create(&th, NULL, thr, NULL);
    simuv_leave();
    simuv_enter(b);
    uv_loop_init(&lb);
    uv_tcp_init(&lb, &client);
    uv_ip4_addr("10.0.0.1", 80, &at);
    assert_int_equal(uv_tcp_connect(&creq, &client, (struct sockaddr *)&at, on_connected), 0);
    simuv_leave();
    simuv_run_until(simuv_now_usec() + 10500000, NULL, NULL);
    assert_int_equal(fired, 10);
    assert_true(msgs > 0);
    pthread_mutex_lock(&m);
    go = 1;
    pthread_cond_signal(&c);
    pthread_mutex_unlock(&m);
    pthread_join(th, NULL);
    printf("# %ld %lx\n", (long)simuv_now_usec(), (long)simuv_hash());
    simuv_crash(b, false);
    simuv_run_until(simuv_now_usec() + 1500000, NULL, NULL);
    uv_close((uv_handle_t *)&server, NULL);
    uv_close((uv_handle_t *)&t, NULL);
    uv_run(&la, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&la), 0);
    simuv_end();
}
int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_all) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
