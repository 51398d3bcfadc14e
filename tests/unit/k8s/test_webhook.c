/* SPDX-License-Identifier: Apache-2.0 */
/* What the webhook changes in a pod, and refuses; amounts as Kubernetes writes them. */
#include "testing.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/json_load.h"
#include "k8s/webhook/base64.h"
#include "k8s/quantity.h"
#include "k8s/webhook/review.h"

static struct settings defaults(void)
{
    return (struct settings){ .memory_name = (char *)(uintptr_t) "alnair/vgpu-memory",
                              .compute_name = (char *)(uintptr_t) "alnair/vgpu-compute",
                              .memory_unit = INT64_C(1) << 30,
                              .compute_units = 100,
                              .webhook = { .scheduler = (char *)(uintptr_t) "aliquot" } };
}

/* The response to the making of a pod with this spec; single quotes stand for double ones. */
static json_t *review(const struct settings *settings, const char *spec)
{
    AQ_CLEANUP(aq_freep) char *text = aq_format(
        "{'apiVersion':'admission.k8s.io/v1','kind':'AdmissionReview','request':"
        "{'uid':'u1','operation':'CREATE','kind':{'kind':'Pod'},'namespace':'a',"
        "'object':{'spec':%s}}}",
        spec);
    AQ_CLEANUP(aq_freep) char *answer = NULL;
    struct aq_error err = { 0 };
    json_t *review, *response;

    for (char *c = text; *c; c++)
        if (*c == '\'')
            *c = '"';
    assert_int_equal(review_answer(settings, text, strlen(text), &answer, &err), 0);
    review = json_load_string(answer, 0);
    response = json_incref(json_object_get(review, "response"));
    json_decref(review);
    assert_string_equal(json_string_value(json_object_get(response, "uid")), "u1");
    return response;
}

static void check_patch(const struct settings *settings, const char *spec, const char *wanted,
                        const char *warning)
{
    json_t *response = review(settings, spec);
    const char *patch = json_string_value(json_object_get(response, "patch"));
    AQ_CLEANUP(aq_freep) char *text = patch ? base64_read(patch) : NULL;
    json_t *warnings = json_object_get(response, "warnings");

    assert_true(json_is_true(json_object_get(response, "allowed")));
    if (!wanted) {
        assert_null(patch);
    } else {
        assert_non_null(text);
        for (char *c = text; *c; c++)
            if (*c == '"')
                *c = '\'';
        assert_string_equal(text, wanted);
    }
    assert_int_equal(json_array_size(warnings), warning ? 1 : 0);
    if (warning)
        assert_string_equal(json_string_value(json_array_get(warnings, 0)), warning);
    json_decref(response);
}

static void check_refused(const struct settings *settings, const char *spec, const char *words)
{
    json_t *response = review(settings, spec);
    json_t *status = json_object_get(response, "status");
    const char *message = json_string_value(json_object_get(status, "message"));

    assert_true(json_is_false(json_object_get(response, "allowed")));
    assert_int_equal(json_integer_value(json_object_get(status, "code")), 403);
    if (!message || !strstr(message, words))
        fail_msg("'%s' is not in '%s'", words, message ? message : "");
    json_decref(response);
}

#define ONE(resources) "{'containers':[{'name':'c','resources':{" resources "}}]}"
#define SCHEDULER "{'op':'add','path':'/spec/schedulerName','value':'aliquot'}"
#define AT(map, name) "'path':'/spec/containers/0/resources/" map "/" name "'"

static void test_pod_without_a_part(void **state)
{
    const struct settings s = defaults();

    (void)state;
    check_patch(&s, ONE("'limits':{'cpu':'1','nvidia.com/gpu':'1'}"), NULL, NULL);
    check_patch(&s, ONE("'limits':{'nvidia.com/gpumem':'100'}"), NULL, NULL);
    check_patch(&s, ONE("'limits':{'alnair/vgpu-memory':'0'}"), NULL, NULL);
    check_patch(&s, "{'hostPID':true,'nodeName':'n','containers':[{'name':'c'}]}", NULL, NULL);
    check_patch(&s, "{}", NULL, NULL);
}

static void test_amounts(void **state)
{
    const struct settings s = defaults();

    (void)state;
    check_patch(&s,
                ONE("'limits':{'alnair/vgpu-memory':'8','alnair/vgpu-compute':50},"
                    "'requests':{'alnair/vgpu-memory':'8','alnair/vgpu-compute':'50'}"),
                "[" SCHEDULER "]", NULL);
    check_patch(&s, ONE("'limits':{'alnair/vgpu-memory':'8'}"),
                "[{'op':'add','path':'/spec/containers/0/resources/requests','value':{}},"
                "{'op':'add'," AT("requests", "alnair~1vgpu-memory") ",'value':'8'}," SCHEDULER "]",
                NULL);
    check_patch(&s, ONE("'requests':{'alnair/vgpu-memory':'1k'}"),
                "[{'op':'add','path':'/spec/containers/0/resources/limits','value':{}},"
                "{'op':'add'," AT("limits", "alnair~1vgpu-memory") ",'value':'1000'}," SCHEDULER
                                                                   "]",
                NULL);
    check_refused(&s,
                  ONE("'limits':{'alnair/vgpu-memory':'8'},'requests':{'alnair/vgpu-memory':'4'}"),
                  "under limits alone");
    check_refused(&s, ONE("'limits':{'alnair/vgpu-memory':'1500m'}"), "whole number");
    check_refused(&s, ONE("'limits':{'alnair/vgpu-memory':'1','alnair/vgpu-compute':'101'}"),
                  "at most 100");
    check_refused(&s, ONE("'limits':{'alnair/vgpu-memory':'1M'}"), "at most 9999");
    check_refused(&s, ONE("'limits':{'alnair/vgpu-compute':'50'}"), "without memory there is no");
}

static void test_settings_of_amounts(void **state)
{
    struct settings s = defaults();

    (void)state;
    s.webhook.card_memory = 80;
    s.webhook.default_memory = 4;
    check_refused(&s, ONE("'limits':{'alnair/vgpu-memory':'81'}"), "at most 80");
    check_patch(
        &s, ONE("'limits':{'alnair/vgpu-compute':'50'},'requests':{'alnair/vgpu-compute':'50'}"),
        "[{'op':'add'," AT(
            "limits", "alnair~1vgpu-memory") ",'value':'4'},"
                                             "{'op':'add'," AT(
                                                 "requests",
                                                 "alnair~1vgpu-memory") ",'value':'4'}," SCHEDULER
                                                                        "]",
        "container 'c' says no alnair/vgpu-memory, and gets 4");
}

static void test_scheduler(void **state)
{
    const struct settings s = defaults();

    (void)state;
#define NAMED(name)                                                           \
    "{'schedulerName':'" name "','initContainers':[{'name':'i','resources':{" \
    "'limits':{'alnair/vgpu-memory':'8'},'requests':{'alnair/vgpu-memory':'8'}}}]}"
    check_patch(&s, NAMED("default-scheduler"), "[" SCHEDULER "]", NULL);
    check_patch(&s, NAMED("alnair-cost-saving"), NULL, NULL);
    check_patch(&s, NAMED("hami-scheduler"), NULL, NULL);
}

#define PART "'resources':{'limits':{'alnair/vgpu-memory':'8'}}"

static void test_rights(void **state)
{
    struct settings s = defaults();

    (void)state;
    check_refused(&s, "{'nodeName':'n1','containers':[{'name':'c'," PART "}]}",
                  "kubernetes.io/hostname: n1");
    check_refused(&s, "{'hostPID':true,'containers':[{'name':'c'," PART "}]}", "hostPID");
    check_refused(&s,
                  "{'containers':[{'name':'c'," PART "},"
                  "{'name':'d','securityContext':{'privileged':true}}]}",
                  "'d' has rights");
    check_refused(&s,
                  "{'containers':[{'name':'c'," PART
                  ",'securityContext':{'capabilities':{'add':['NET_ADMIN','SYS_ADMIN']}}}]}",
                  "'c' has rights");
    s.webhook.allow_node_name = s.webhook.allow_privileged = true;
    check_patch(&s,
                "{'nodeName':'n1','hostPID':true,'schedulerName':'x','containers':[{'name':'c',"
                "'securityContext':{'privileged':true},'resources':{'limits':"
                "{'alnair/vgpu-memory':'8'},'requests':{'alnair/vgpu-memory':'8'}}}]}",
                NULL, NULL);
}

static void test_mounts(void **state)
{
    static const struct {
        const char *path;
        bool is_refused;
    } cases[] = {
        { "/etc/ld.so.preload", true },
        { "/etc/./x/..//ld.so.preload", true },
        { "/run/aliquot", true },
        { "/var/run/aliquot/gpu.sock", true },
        { "/opt/kernel/", true },
        { "opt/kernel/libaliquot-gpu.so", true },
        { "/../../opt/kernel", true },
        { "/opt/kernels", false },
        { "/run", false },
        { "/data/etc/ld.so.preload", false },
        { "", false },
    };
    const struct settings s = defaults();

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        AQ_CLEANUP(aq_freep) char *spec = aq_format(
            "{'schedulerName':'x','containers':[{'name':'c'," PART "},{'name':'d',"
            "'volumeMounts':[{'mountPath':'/a'},{'mountPath':'%s'}]}]}",
            cases[i].path);
        json_t *response = review(&s, spec);

        if (json_is_true(json_object_get(response, "allowed")) == cases[i].is_refused)
            fail_msg("%s", cases[i].path);
        json_decref(response);
    }
}

static void test_hami(void **state)
{
    struct settings s = defaults();

    (void)state;
    s.webhook.hami = true;
    check_patch(
        &s,
        ONE("'limits':{'nvidia.com/gpu':'1','nvidia.com/gpumem':'3k',"
            "'nvidia.com/gpucores':'30'},'requests':{'nvidia.com/gpumem':'3k'}"),
        "[{'op':'remove'," AT(
            "limits",
            "nvidia.com~1gpu") "},"
                               "{'op':'remove'," AT(
                                   "limits",
                                   "nvidia.com~1gpumem") "},"
                                                         "{'op':'remove'," AT(
                                                             "requests",
                                                             "nvidia.com~1gpumem") "},"
                                                                                   "{'op':'remove'," AT(
                                                                                       "limits",
                                                                                       "nvidia.com~1gpucores") "},"
                                                                                                               "{'op':'add'," AT(
                                                                                                                   "limits",
                                                                                                                   "alnair~1vgpu-memory") ",'value':'3'},"
                                                                                                                                          "{'op':'add'," AT(
                                                                                                                                              "requests",
                                                                                                                                              "alnair~1vgpu-memory") ",'value':'3'},"
                                                                                                                                                                     "{'op':'add'," AT(
                                                                                                                                                                         "limits",
                                                                                                                                                                         "alnair~1vgpu-compute") ",'value':'30'},"
                                                                                                                                                                                                 "{'op':'add'," AT(
                                                                                                                                                                                                     "requests",
                                                                                                                                                                                                     "alnair~1vgpu-compute") ",'value':'30'}," SCHEDULER
                                                                                                                                                                                                                             "]",
        "container 'c': nvidia.com/gpu 1, nvidia.com/gpumem 3000, nvidia.com/gpucores 30 "
        "became alnair/vgpu-memory 3, alnair/vgpu-compute 30");
    check_patch(&s, ONE("'limits':{'nvidia.com/gpu':'1'}"), NULL, NULL);
    check_refused(&s, ONE("'limits':{'nvidia.com/gpu':'2','nvidia.com/gpumem':'1'}"), "one card");
    check_refused(&s, ONE("'limits':{'nvidia.com/gpumem':'1','alnair/vgpu-memory':'1'}"),
                  "two kinds of names");
    check_refused(&s, ONE("'limits':{'nvidia.com/gpumem-percentage':'50'}"), "card-memory");
    check_refused(&s, ONE("'limits':{'nvidia.com/gpucores':'50'}"), "without memory");
    s.webhook.card_memory = 79;
    s.compute_units = 10;
    check_patch(
        &s,
        ONE("'limits':{'nvidia.com/gpumem-percentage':'50','nvidia.com/gpucores':'31'},"
            "'requests':{}"),
        "[{'op':'remove'," AT(
            "limits",
            "nvidia.com~1gpumem-percentage") "},"
                                             "{'op':'remove'," AT(
                                                 "limits",
                                                 "nvidia.com~1gpucores") "},"
                                                                         "{'op':'add'," AT(
                                                                             "limits",
                                                                             "alnair~1vgpu-memory") ",'value':'40'},"
                                                                                                    "{'op':'add'," AT(
                                                                                                        "requests",
                                                                                                        "alnair~1vgpu-memory") ",'value':'40'},"
                                                                                                                               "{'op':'add'," AT(
                                                                                                                                   "limits",
                                                                                                                                   "alnair~1vgpu-compute") ",'value':'4'},"
                                                                                                                                                           "{'op':'add'," AT(
                                                                                                                                                               "requests",
                                                                                                                                                               "alnair~1vgpu-compute") ",'value':'4'}," SCHEDULER
                                                                                                                                                                                       "]",
        "container 'c': nvidia.com/gpumem-percentage 50, nvidia.com/gpucores 31 became "
        "alnair/vgpu-memory 40, alnair/vgpu-compute 4");
    check_refused(&s, ONE("'limits':{'nvidia.com/gpumem':'1000000000000'}"), "at most 79");
}

static void test_quantity(void **state)
{
    static const struct {
        const char *text;
        int64_t is; /* -1 = none */
    } cases[] = {
        { "0", 0 },      { "8", 8 },       { "8k", 8000 }, { "2Ki", 2048 },
        { "3e3", 3000 }, { "1.5k", 1500 }, { "8000m", 8 }, { "1T", 1000000000000 },
        { "1.5", -1 },   { "1m", -1 },     { "-1", -1 },   { "", -1 },
        { "k", -1 },     { "8kk", -1 },    { "2T", -1 },   { "1Ei", -1 },
        { "1.5Ki", -1 }, { "8 ", -1 },     { "1e99", -1 }, { "9999999999999999999", -1 },
        { "0E", 0 },     { "8.0", 8 },     { ".5", -1 },   { "8.", -1 },
    };
    int64_t got;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        json_t *value = json_string(cases[i].text);
        bool ok = quantity_read(value, &got);

        if (ok != (cases[i].is >= 0) || (ok && got != cases[i].is))
            fail_msg("'%s'", cases[i].text);
        json_decref(value);
    }
    assert_false(quantity_read(NULL, &got));
}

static void test_no_review(void **state)
{
    static const char *const bodies[] = {
        "", "{", "[]", "{}", "{\"apiVersion\":\"v1\"}", "{\"apiVersion\":\"admission.k8s.io/v1\"}"
    };
    const struct settings s = defaults();
    struct aq_error err = { 0 };
    char *answer = NULL;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(bodies); i++)
        assert_int_equal(review_answer(&s, bodies[i], strlen(bodies[i]), &answer, &err), -EINVAL);
    assert_null(answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pod_without_a_part),
        cmocka_unit_test(test_amounts),
        cmocka_unit_test(test_settings_of_amounts),
        cmocka_unit_test(test_scheduler),
        cmocka_unit_test(test_rights),
        cmocka_unit_test(test_mounts),
        cmocka_unit_test(test_hami),
        cmocka_unit_test(test_quantity),
        cmocka_unit_test(test_no_review),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
