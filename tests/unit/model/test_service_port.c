/* SPDX-License-Identifier: Apache-2.0 */
/* Service ports: what images and sessions may say, and the form that clients read. */
#include "testing.h"

#include <errno.h>

#include "model/service_port.h"

#define LABEL_FIELD "ai.backend.service-ports"

static char *text_of(const struct services *services, const uint16_t *outside)
{
    struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    services_write(services, outside, &w);
    return strbuf_steal(&out);
}

/* "NAME PROTOCOL PORT.. ;" of each, for comparing */
static void summarize(const struct services *s, struct strbuf *out)
{
    for (size_t i = 0; i < s->count; i++) {
        strbuf_addf(out, "%s%s %s", i ? "; " : "", s->items[i].name, s->items[i].protocol);
        for (size_t p = 0; p < s->items[i].count; p++)
            strbuf_addf(out, " %u", s->ports[s->items[i].first + p]);
    }
}

static const struct {
    const char *label, *summary; /* NULL = refused */
    const char *why;             /* in the refusal */
} labels[] = {
    { "", "", NULL },
    { "web:http:8080", "web http 8080", NULL },
    { "a:tcp:[1230,1240,9000],x:http:3000,t:http:[5000,5001]",
      "a tcp 1230 1240 9000; x http 3000; t http 5000 5001", NULL },
    { "x:pty:1234,y:tcp:1235", "y tcp 1235", NULL },
    { "x:pty:99999", "", NULL },
    { "a-b_C9:preopen:1025,d:vnc:65534,e:rdp:7680,", "a-b_C9 preopen 1025; d vnc 65534; e rdp 7680",
      NULL },
    { "x:http:65536", NULL, "65536 must be smaller than 65535" },
    { "x:http:65535", NULL, "smaller than 65535" },
    { "x:http:1000", NULL, "1000 must be larger than 1024" },
    { "x:http:1024", NULL, "larger than 1024" },
    { "x:http:-1", NULL, "Invalid service-ports format" },
    { "x:http:99999999999999999999", NULL, "Invalid service-ports format" },
    { "x:http:", NULL, "Invalid service-ports format" },
    { "x:http:[]", NULL, "Invalid service-ports format" },
    { "x:http:[1230", NULL, "Invalid service-ports format" },
    { "x:http:[1230,]", NULL, "Invalid service-ports format" },
    { "x:http:1230]", NULL, "Invalid service-ports format" },
    { "x:http:1230 ", NULL, "Invalid service-ports format" },
    { "x y:http:1230", NULL, "Invalid service-ports format" },
    { ":http:1230", NULL, "Invalid service-ports format" },
    { "x::1230", NULL, "Invalid service-ports format" },
    { ",x:http:1230", NULL, "Invalid service-ports format" },
    { "abcdefg", NULL, "Invalid service-ports format" },
    { "x:tcp:1234,abcdefg", NULL, "Invalid service-ports format at 'abcdefg'" },
    { "x:tcp:1234,y:tcp:1234", NULL, "1234 is already used by 'x'" },
    { "x:tcp:[1234,1234]", NULL, "already used by 'x'" },
    { "x:tcp:2000", NULL, "reserved" },
    { "x:tcp:2003", NULL, "reserved" },
    { "x:tcp:2200", NULL, "reserved" },
    { "x:http:7681", NULL, "reserved" },
    { "x:unsupported:1", NULL, "Unsupported service protocol 'unsupported'" },
    { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:tcp:1234", NULL,
      "more than 63 characters" },
};

static void test_labels(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(labels); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf found = STRBUF_INIT;
        struct services services = { .count = 0 };
        struct aq_error err = { 0 };
        int r = services_add_label(&services, labels[i].label, &err);

        if (!labels[i].summary) {
            assert_int_equal(r, -EINVAL);
            assert_string_equal(err.field, LABEL_FIELD);
            assert_non_null(strstr(err.text, labels[i].why));
            continue;
        }
        assert_int_equal(r, 0);
        summarize(&services, &found);
        assert_string_equal(found.data, labels[i].summary);
    }
}

#define OPENED_MAX 3

static const struct {
    int64_t ports[OPENED_MAX]; /* up to the first 0 */
    const char *summary, *why;
} opened[] = {
    { { 0 }, "web http 8080", NULL },
    { { 9000, 1024, 65535 },
      "web http 8080; 9000 preopen 9000; 1024 preopen 1024; 65535 preopen 65535",
      NULL },
    { { 8080 }, NULL, "8080 is already used by 'web'" },
    { { 9000, 9000 }, NULL, "already used by '9000'" },
    { { 1023 }, NULL, "1023 must be larger than 1023" },
    { { 65536 }, NULL, "smaller than 65536" },
    { { 2001 }, NULL, "reserved" },
    { { -5 }, NULL, "list of port numbers" },
    { { 99999999999 }, NULL, "list of port numbers" },
};

static int open_ports(struct services *services, const int64_t *ports, struct aq_error *err)
{
    struct int_list list = { .items = (int64_t *)(uintptr_t)ports };

    while (list.count < OPENED_MAX && ports[list.count])
        list.count++;
    return services_add_preopen(services, &list, err);
}

static void test_opened(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(opened); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf found = STRBUF_INIT;
        struct services services = { .count = 0 };
        struct aq_error err = { 0 };

        assert_int_equal(services_add_label(&services, "web:http:8080", &err), 0);
        if (!opened[i].summary) {
            assert_int_equal(open_ports(&services, opened[i].ports, &err), -EINVAL);
            assert_string_equal(err.field, "preopen_ports");
            if (!strstr(err.text, opened[i].why))
                fail_msg("%lld: %s", (long long)opened[i].ports[0], err.text);
            continue;
        }
        assert_int_equal(open_ports(&services, opened[i].ports, &err), 0);
        summarize(&services, &found);
        assert_string_equal(found.data, opened[i].summary);
    }
}

static void test_too_many(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf label = STRBUF_INIT;
    struct services services = { .count = 0 }, again = { .count = 0 };
    struct aq_error err = { 0 };

    (void)state;
    for (int i = 0; i < SERVICE_PORTS_MAX; i++)
        strbuf_addf(&label, "s%d:tcp:%d,", i, 10000 + i);
    assert_int_equal(services_add_label(&services, label.data, &err), 0);
    assert_int_equal(services.port_count, SERVICE_PORTS_MAX);
    assert_int_equal(open_ports(&services, (int64_t[]){ 9000, 0 }, &err), -E2BIG);
    strbuf_adds(&label, "one:tcp:[9000,9001]");
    assert_int_equal(services_add_label(&again, label.data, &err), -E2BIG);
    assert_string_equal(err.field, LABEL_FIELD);
}

static void test_written_form(void **state)
{
    static const uint16_t outside[] = { 30000, 30001, 30002 };
    struct services services = { .count = 0 };
    struct aq_error err = { 0 };
    char *text;

    (void)state;
    assert_int_equal(services_add_label(&services, "web:http:[8080,8081]", &err), 0);
    assert_int_equal(open_ports(&services, (int64_t[]){ 9000, 0 }, &err), 0);
    services_mark_endpoints(&services, "other,web,we");
    text = text_of(&services, outside);
    assert_string_equal(text,
                        "[{\"name\":\"web\",\"protocol\":\"http\",\"container_ports\":[8080,8081],"
                        "\"host_ports\":[30000,30001],\"is_inference\":true},"
                        "{\"name\":\"9000\",\"protocol\":\"preopen\",\"container_ports\":[9000],"
                        "\"host_ports\":[30002],\"is_inference\":false}]");
    free(text);
    services.count = 1;
    text = text_of(&services, NULL);
    assert_string_equal(text,
                        "[{\"name\":\"web\",\"protocol\":\"http\",\"container_ports\":[8080,8081],"
                        "\"host_ports\":[],\"is_inference\":true}]");
    free(text);
}

/* What the platform serves itself gives way to the image's. */
static void test_own(void **state)
{
    struct services services = { .count = 0 };
    struct int_list many = { (int64_t[SERVICE_PORTS_MAX]){ 9000 }, 1 };

    (void)state;
    assert_int_equal(services_add_label(&services, "web:http:8080", NULL), 0);
    assert_true(services_add_own(&services, "sshd", "tcp", 2200));
    assert_int_equal(services.port_count, 2);
    assert_string_equal(services.items[1].name, "sshd");
    assert_int_equal(services.ports[services.items[1].first], 2200);

    services = (struct services){ .count = 0 };
    assert_int_equal(services_add_label(&services, "sshd:tcp:2022", NULL), 0);
    assert_false(services_add_own(&services, "sshd", "tcp", 2200));
    for (int i = 1; i < SERVICE_PORTS_MAX - 1; i++)
        many.items[many.count++] = 9000 + i;
    assert_int_equal(services_add_preopen(&services, &many, NULL), 0);
    assert_false(services_add_own(&services, "other", "tcp", 2200)); /* there is no room */
    assert_int_equal(services.port_count, SERVICE_PORTS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels),   cmocka_unit_test(test_opened),
        cmocka_unit_test(test_too_many), cmocka_unit_test(test_written_form),
        cmocka_unit_test(test_own),
    };

    return cmocka_run_group_tests_name("model/service_port", tests, NULL, NULL);
}
