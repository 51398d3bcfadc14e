/* SPDX-License-Identifier: Apache-2.0 */
/* Logins whose users leave, seek and end others while they are notified. The manager is the test's. */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "web/login.h"

#define VISITORS 4
#define ASKS 8

/* As a request that uses a login: on the heap, and freed once it has its reply. */
struct visitor {
    struct login_use use;
    char name;
};

struct manager_ask {
    manager_answered_fn *fn;
    void *data;
    bool is_open;
};

static struct logins logins;
static struct manager_ask asks[ASKS];
static size_t ask_count;
static bool is_connected;
static struct visitor *visitors[VISITORS + 1];
static char told[64]; /* "a+" found, "a-" not found, "a!" ended */
static void (*act)(size_t at);

/* ---- the manager ---- */

bool manager_is_connected(const struct manager *manager)
{
    (void)manager;
    return is_connected;
}

int manager_ask(struct manager *manager, const char *op, json_t *args, manager_answered_fn *fn,
                void *data, struct manager_ask **ret, struct aq_error *err)
{
    (void)manager;
    assert_string_equal(op, "find");
    json_decref(args);
    if (!is_connected)
        return aq_fail_kind(err, ENOTCONN, "bad-gateway", "the manager is away");
    assert_true(ask_count < ASKS);
    asks[ask_count] = (struct manager_ask){ fn, data, true };
    *ret = &asks[ask_count++];
    return 0;
}

void manager_cancel(struct manager_ask *ask)
{
    if (ask)
        ask->is_open = false;
}

/* Answer the last question: the login is there, or is not for this reason. */
static void answer(int code)
{
    json_t *login = json_pack("{s:s, s:s, s:s, s:I}", "id", "018f4c6e-0000-7000-8000-000000000001",
                              "access_key", "AK", "secret_key", "SK", "expires",
                              (json_int_t)(clock_realtime_usec() / USEC_PER_SEC + 3600));
    struct manager_ask *ask = &asks[ask_count - 1];
    struct aq_error err = { 0 };

    if (code)
        (void)aq_fail_kind(&err, code, "auth-failed", "refused");
    assert_true(ask->is_open);
    ask->is_open = false;
    ask->fn(ask->data, code ? NULL : login, &err, 0);
    json_decref(login);
}

static void end_login(void)
{
    const struct msg_web_ended ended = { .access_key = "AK" };

    logins_on_ended(&logins, &ended);
}

/* ---- visitors ---- */

static void visitor_free(size_t at)
{
    if (!visitors[at])
        return;
    login_leave(&visitors[at]->use);
    free(AQ_TAKE(visitors[at]));
}

static void visitor_tell(const struct visitor *visitor, char what)
{
    size_t len = strlen(told);

    assert_true(len + 2 < sizeof(told));
    told[len] = visitor->name;
    told[len + 1] = what;
    told[len + 2] = '\0';
    act((size_t)(visitor->name - 'a'));
}

static void on_found(void *data, struct login *login, const struct aq_error *err)
{
    assert_int_equal(!login, err && err->code);
    visitor_tell(data, login ? '+' : '-');
}

static void on_ended(void *data)
{
    visitor_tell(data, '!');
}

static void visitor_new(size_t at)
{
    struct visitor *visitor = calloc(1, sizeof(*visitor));

    assert_non_null(visitor);
    visitor->name = (char)('a' + at);
    visitor->use = (struct login_use){ .on_found = on_found,
                                       .on_ended = on_ended,
                                       .data = visitor };
    list_init(&visitor->use.link);
    visitors[at] = visitor;
    login_seek(&logins, "hash", &visitor->use);
}

/* ---- what they do ---- */

static void act_nothing(size_t at)
{
    (void)at;
}

static void act_free(size_t at)
{
    visitor_free(at);
}

static void act_free_two(size_t at)
{
    visitor_free(at);
    visitor_free(at + 1);
}

static void act_free_all(size_t at)
{
    (void)at;
    for (size_t i = 0; i <= VISITORS; i++)
        visitor_free(i);
}

/* As a pipelined request that comes with the same cookie. */
static void act_free_and_seek(size_t at)
{
    visitor_free(at);
    if (at == 0)
        visitor_new(VISITORS);
}

static void act_end_login(size_t at)
{
    act = act_free;
    visitor_free(at);
    end_login();
}

/* ---- the tests ---- */

static void begin(void)
{
    logins = (struct logins){ 0 };
    ask_count = 0;
    is_connected = true;
    logins_open(&logins, uv_default_loop(), NULL);
    act = act_nothing;
    for (size_t i = 0; i < VISITORS; i++)
        visitor_new(i);
    told[0] = '\0';
}

static void end(void)
{
    logins_close(&logins);
    act_free_all(0);
    (void)uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}

static void refuse(void)
{
    answer(EACCES);
}

static void lose(void)
{
    answer(EAGAIN);
}

static void find(void)
{
    answer(0);
}

static void find_and_end(void)
{
    void (*what)(size_t at) = act;

    act = act_nothing;
    answer(0);
    told[0] = '\0';
    act = what;
    end_login();
}

static const struct {
    const char *name;
    void (*happens)(void);
    void (*act)(size_t at);
    const char *told;
} cases[] = {
    { "refused, each leaves", refuse, act_free, "a-b-c-d-" },
    { "refused, the next one goes", refuse, act_free_two, "a-c-" },
    { "refused, all go", refuse, act_free_all, "a-" },
    { "refused, one comes", refuse, act_free_and_seek, "a-b-c-d-" },
    { "failed, each leaves", lose, act_free, "a-b-c-d-" },
    { "failed, the next one goes", lose, act_free_two, "a-c-" },
    { "failed, all go", lose, act_free_all, "a-" },
    { "failed, one comes", lose, act_free_and_seek, "a-b-c-d-" },
    { "found, each leaves", find, act_free, "a+b+c+d+" },
    { "found, the next one goes", find, act_free_two, "a+c+" },
    { "found, all go", find, act_free_all, "a+" },
    { "found, one comes", find, act_free_and_seek, "a+e+b+c+d+" },
    { "found, and ended by the first", find, act_end_login, "a+b-c-d-" },
    { "ended, each leaves", find_and_end, act_free, "a!b!c!d!" },
    { "ended, the next one goes", find_and_end, act_free_two, "a!c!" },
    { "ended, all go", find_and_end, act_free_all, "a!" },
    { "ended, one comes", find_and_end, act_free_and_seek, "a!b!c!d!" },
    { "ended, and ended again", find_and_end, act_end_login, "a!b!c!d!" },
};

static void test_who_is_notified_changes_the_rest(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        begin();
        act = cases[i].act;
        cases[i].happens();
        assert_row(strcmp(told, cases[i].told) == 0, "%s: %s", cases[i].name, told);
        end();
    }
}

/* Its answer is that of its own question, not the failure that others are notified of. */
static void test_one_that_comes_meanwhile(void **state)
{
    (void)state;
    begin();
    act = act_free_and_seek;
    lose();
    assert_int_equal(ask_count, 2);
    act = act_nothing;
    told[0] = '\0';
    find();
    assert_string_equal(told, "e+");
    end();
}

static void test_the_manager_is_away(void **state)
{
    (void)state;
    begin();
    act = act_free_and_seek;
    is_connected = false;
    lose(); /* the question of the one that comes fails at once */
    assert_string_equal(told, "a-e-b-c-d-");
    assert_int_equal(logins.by_hash.count, 0);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_notified_changes_the_rest),
        cmocka_unit_test(test_one_that_comes_meanwhile),
        cmocka_unit_test(test_the_manager_is_away),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
