/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes with the same seed do the same, event by event; another seed does something else. */
#include "stage.h"

#include <openssl/rand.h>
#include <pthread.h>
#include <sodium.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/uuid.h"

#define STAGES 4

static struct stage stages[STAGES];

static void *sleep_at_random(void *data)
{
    unsigned char byte;

    for (int i = 0; i < 20 && getrandom(&byte, 1, 0) == 1; i++)
        (void)usleep(byte * 1000U);
    return data;
}

/* Bytes of all sources of chance go over connections that stall and break. */
static void talk(struct stage *s)
{
    unsigned char bytes[3][16];
    struct uuid id = uuid_ordered();

    if (s->client.connected != 1 || s->client.ended)
        return;
    (void)RAND_bytes(bytes[0], sizeof(bytes[0]));
    randombytes_buf(bytes[1], sizeof(bytes[1]));
    assert_int_equal(getrandom(bytes[2], sizeof(bytes[2]), 0), sizeof(bytes[2]));
    stage_write(&s->client, (const char *)bytes, sizeof(bytes));
    (void)uv_try_write((uv_stream_t *)&s->client.tcp, &(uv_buf_t){ (char *)id.bytes, 16 }, 1);
}

static void talk_for_a_while(uint64_t seed)
{
    const struct simuv_path bad = {
        .latency_min_usec = 100, .latency_max_usec = 90000, .stall = 0.1, .reset = 0.002
    };
    pthread_t thread;

    simuv_begin(seed);
    simuv_trace(stdout);
    for (int i = 0; i < STAGES; i++) {
        stage_init(&stages[i]);
        stage_connect(&stages[i]);
        simuv_set_path(stages[i].client_host, stages[i].server_host, &bad);
        simuv_enter(stages[i].server_host);
        (void)pthread_create(&thread, NULL, sleep_at_random, NULL);
        simuv_leave();
    }
    for (int i = 0; i < 400; i++) {
        stage_run(1 + (int64_t)simuv_random_below(2 * SEC));
        talk(&stages[simuv_random_below(STAGES)]);
    }
    stage_crash_server(&stages[0], simuv_chance(0.5));
    stage_run(60 * SEC);
    (void)printf("%016llx\n", (unsigned long long)simuv_hash());
    simuv_end();
}

/* What a process with this seed prints. */
static void run(uint64_t seed, struct strbuf *ret)
{
    char bytes[4096];
    ssize_t got;
    int ends[2], status;
    pid_t child;

    strbuf_init(ret);
    assert_int_equal(pipe(ends), 0);
    (void)fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)close(ends[0]);
        talk_for_a_while(seed);
        (void)fflush(stdout);
        _exit(0);
    }
    (void)close(ends[1]);
    while ((got = read(ends[0], bytes, sizeof(bytes))) > 0)
        strbuf_add(ret, bytes, (size_t)got);
    (void)close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_a_seed_gives_the_same_events(void **state)
{
    struct strbuf first, second, other;

    (void)state;
    run(1, &first);
    run(1, &second);
    run(2, &other);
    assert_true(first.len > 10000);
    assert_string_equal(first.data, second.data);
    assert_string_not_equal(first.data, other.data);
    strbuf_done(&first);
    strbuf_done(&second);
    strbuf_done(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_a_seed_gives_the_same_events) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
