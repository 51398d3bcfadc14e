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

/* The response to a request with these members; single quotes stand for double ones. */
static json_t *review_request(const struct settings *settings, const char *members)
{
    AQ_CLEANUP(aq_freep) char *text = aq_format(
        "{'apiVersion':'admission.k8s.io/v1','kind':'AdmissionReview','request':"
        "{'uid':'u1','kind':{'kind':'Pod'},'namespace':'a',%s}}",
        members);
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

/* The response to the making of a pod with this spec. */
static json_t *review(const struct settings *settings, const char *spec)
{
    AQ_CLEANUP(aq_freep) char *members = aq_format("'operation':'CREATE','object':{'spec':%s}",
                                                   spec);

    return review_request(settings, members);
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
                  "containers[1] 'd': securityContext.privileged");
    s.webhook.allow_node_name = s.webhook.allow_privileged = true;
    check_patch(&s,
                "{'nodeName':'n1','hostPID':true,'schedulerName':'x','containers':[{'name':'c',"
                "'securityContext':{'privileged':true},'resources':{'limits':"
                "{'alnair/vgpu-memory':'8'},'requests':{'alnair/vgpu-memory':'8'}}}]}",
                NULL, NULL);
}

#define WHOLE_PART \
    "'resources':{'limits':{'alnair/vgpu-memory':'8'},'requests':{'alnair/vgpu-memory':'8'}}"

static void test_capabilities(void **state)
{
    static const struct {
        const char *name;
        bool is_refused;
    } cases[] = {
        { "CHOWN", false },
        { "chown", false },
        { "CAP_CHOWN", false },
        { "cap_Chown", false },
        { "MKNOD", false },
        { "NET_RAW", false },
        { "IPC_LOCK", false },
        { "CAP_SYS_NICE", false },
        { "NET_ADMIN", false },
        { "SYSLOG", false },
        { "CAP_syslog", false },
        { "SYS_ADMIN", true },
        { "sys_admin", true },
        { "cap_sys_admin", true },
        { "CAP_CAP_CHOWN", true },
        { "CAP_CAP_SYSLOG", true },
        { "ALL", true },
        { "all", true },
        { "SYS_MODULE", true },
        { "SYS_PTRACE", true },
        { "DAC_READ_SEARCH", true },
        { "SYS_RAWIO", true },
        { "BPF", true },
        { "PERFMON", true },
        { "SYS_BOOT", true },
        { "CHECKPOINT_RESTORE", true },
        { "CHOWN ", true },
        { " CHOWN", true },
        { "CAP_", true },
        { "", true },
        { "CHOW", true },
        { "CHOWNS", true },
        { "SYS_FUTURE", true },
    };
    static char syslog[] = "cap_syslog", *more[] = { syslog };
    struct settings s = defaults();

    (void)state;
    s.webhook.capabilities = (struct conf_list){ .items = more, .count = 1 };
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        AQ_CLEANUP(aq_freep) char *spec = aq_format(
            "{'schedulerName':'x','containers':[{'name':'c'," WHOLE_PART "},{'name':'d',"
            "'securityContext':{'capabilities':{'drop':['ALL'],'add':['KILL','%s']}}}]}",
            cases[i].name);
        AQ_CLEANUP(aq_freep) char *words = aq_format(
            "containers[1] 'd': securityContext.capabilities.add has '%s'", cases[i].name);

        if (cases[i].is_refused)
            check_refused(&s, spec, words);
        else
            check_patch(&s, spec, NULL, NULL);
    }
    check_refused(&s,
                  "{'schedulerName':'x','containers':[{'name':'c'," WHOLE_PART
                  ",'securityContext':{'capabilities':{'add':[7]}}}]}",
                  "capabilities.add has ''");
}

/* Members of the spec, or of its second container, which has no part of a GPU. */
static const struct {
    const char *spec, *container;
    const char *words; /* of the refusal; NULL = accepted */
} rights_cases[] = {
    { "'hostIPC':true", "", "spec.hostIPC" },
    { "'hostPID':false,'hostIPC':false,'hostNetwork':true", "", NULL },
    { "'hostNetwork':true", "'securityContext':{'capabilities':{'add':['cap_net_admin']}}",
      "spec.hostNetwork" },
    { "'shareProcessNamespace':true,'runtimeClassName':'nvidia'", "", NULL },
    { "'securityContext':{'seccompProfile':{'type':'Unconfined'}}", "",
      "spec.securityContext.seccompProfile.type" },
    { "'securityContext':{'seccompProfile':{'type':'RuntimeDefault'}}", "", NULL },
    { "'securityContext':{'appArmorProfile':{'type':'Unconfined'}}", "",
      "spec.securityContext.appArmorProfile.type" },
    { "'securityContext':{'seLinuxOptions':{'type':'spc_t'}}", "", "'spc_t'" },
    { "'securityContext':{'seLinuxOptions':{'type':'container_t','level':'s0:c1'}}", "", NULL },
    { "", "'securityContext':{'seccompProfile':{'type':'Unconfined'}}",
      "containers[1] 'd': securityContext.seccompProfile.type" },
    { "", "'securityContext':{'seccompProfile':{'type':'Localhost','localhostProfile':'a'}}",
      NULL },
    { "", "'securityContext':{'procMount':'Unmasked'}", "procMount is 'Unmasked'" },
    { "", "'securityContext':{'procMount':'Default','allowPrivilegeEscalation':true}", NULL },
    { "", "'securityContext':{'runAsUser':0,'privileged':false}", NULL },
    { "", "'env':[{'name':'NVIDIA_VISIBLE_DEVICES','value':'all'}]", "set it to void" },
    { "", "'env':[{'name':'NVIDIA_VISIBLE_DEVICES','value':'0'}]", "set it to void" },
    { "",
      "'env':[{'name':'NVIDIA_VISIBLE_DEVICES','value':'void'},"
      "{'name':'NVIDIA_VISIBLE_DEVICES','value':'$(A)'}]",
      "set it to void" },
    { "", "'env':[{'name':'NVIDIA_VISIBLE_DEVICES','valueFrom':{'fieldRef':{}}}]",
      "set it to void" },
    { "", "'env':[{'name':'NVIDIA_VISIBLE_DEVICES','value':'void'}],'envFrom':[{}]", NULL },
    { "",
      "'env':[{'name':'NVIDIA_VISIBLE_DEVICES'},{'name':'LD_PRELOAD','value':'/a'},"
      "{'name':'CUDA_VISIBLE_DEVICES','value':'0'}]",
      NULL },
    { "'volumes':[{'name':'v','hostPath':{'path':'/'}}]", "", "volume 'v': hostPath.path '/'" },
    { "'volumes':[{'name':'v','hostPath':{'path':'/dev'}}]", "", "hostPath.path" },
    { "'volumes':[{'name':'v','hostPath':{'path':'/var/run/../run/containerd'}}]", "", "hostPath" },
    { "'volumes':[{'name':'v','hostPath':{}}]", "", "hostPath.path ''" },
    { "'volumes':[{'name':'v','hostPath':{'path':'/data/../dev'}}]", "", "hostPath.path" },
    { "'volumes':[{'name':'v','hostPath':{'path':'/database'}}]", "", "hostPath.path" },
    { "'volumes':[{'name':'v','hostPath':{'path':'/data'}}]", "", NULL },
    { "'volumes':[{'name':'v','hostPath':{'path':'//data/./sets/','type':'Directory'}}]", "",
      NULL },
    { "'volumes':[{'name':'v','flexVolume':{'driver':'a/b'}}]", "", "'flexVolume'" },
    { "'volumes':[{'name':'v','gitRepo':{'repository':'a'}}]", "", "'gitRepo'" },
    { "'volumes':[{'name':'v','future':{}}]", "", "'future'" },
    { "'volumes':[{'name':'v','emptyDir':{'medium':'Memory'}},{'name':'w','csi':{'driver':'a'}},"
      "{'name':'x','persistentVolumeClaim':{'claimName':'a'}},{'name':'y','projected':{}}]",
      "", NULL },
};

static void test_rights_of_pods(void **state)
{
    static char data[] = "/data/", *folders[] = { data };
    struct settings s = defaults();

    (void)state;
    s.webhook.host_paths = (struct conf_list){ .items = folders, .count = 1 };
    for (size_t i = 0; i < AQ_COUNT(rights_cases); i++) {
        const char *more = rights_cases[i].spec, *in = rights_cases[i].container;
        AQ_CLEANUP(aq_freep) char *spec = aq_format(
            "{'schedulerName':'x','containers':[{'name':'c'," WHOLE_PART "},{'name':'d'%s%s}]%s%s}",
            in[0] ? "," : "", in, more[0] ? "," : "", more);

        s.webhook.allow_privileged = false;
        if (rights_cases[i].words)
            check_refused(&s, spec, rights_cases[i].words);
        else
            check_patch(&s, spec, NULL, NULL);
        s.webhook.allow_privileged = true;
        check_patch(&s, spec, NULL, NULL);
    }
}

static void test_a_pod_with_too_many_containers_is_refused(void **state)
{
    const struct settings s = defaults();

    (void)state;
    for (int more = 255; more <= 256; more++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf spec = STRBUF_INIT;

        strbuf_adds(&spec, "{'schedulerName':'x','containers':[{'name':'c'," WHOLE_PART "}");
        for (int i = 1; i < more; i++)
            strbuf_addf(&spec, ",{'name':'d%d'}", i);
        strbuf_adds(&spec, "],'initContainers':[{'name':'i'}]}");
        if (more == 255)
            check_patch(&s, spec.data, NULL, NULL);
        else
            check_refused(&s, spec.data, "257 containers and initContainers");
    }
}

static void test_apparmor_by_annotation(void **state)
{
    const struct settings s = defaults();
    json_t *response = review_request(
        &s, "'operation':'CREATE','object':{'metadata':{'annotations':"
            "{'container.apparmor.security.beta.kubernetes.io/c':'unconfined'}},"
            "'spec':{'containers':[{'name':'c'," WHOLE_PART "}]}}");

    (void)state;
    assert_true(json_is_false(json_object_get(response, "allowed")));
    json_decref(response);
}

static void test_variables_of_other_objects(void **state)
{
    const struct settings s = defaults();

    (void)state;
#define VOID "{'name':'NVIDIA_VISIBLE_DEVICES','value':'void'}"
    check_patch(
        &s,
        "{'schedulerName':'x','containers':[{'name':'c','envFrom':[{'configMapRef':{}}]," WHOLE_PART
        "},{'name':'d','env':[{'name':'A','value':'all'}],'envFrom':[{'secretRef':{}}]}]}",
        "[{'op':'add','path':'/spec/containers/0/env','value':[" VOID "]},"
        "{'op':'add','path':'/spec/containers/1/env/-','value':" VOID "}]",
        NULL);
}

static json_t *review_debug(const struct settings *settings, const char *part, const char *old,
                            const char *now)
{
    AQ_CLEANUP(aq_freep) char *members = aq_format(
        "'operation':'UPDATE','subResource':'ephemeralcontainers',"
        "'object':{'spec':{'containers':[{'name':'c',%s}],'ephemeralContainers':[%s]}},"
        "'oldObject':{'spec':{'containers':[{'name':'c',%s}],'ephemeralContainers':[%s]}}",
        part, now, part, old);

    return review_request(settings, members);
}

static void test_debug_containers(void **state)
{
#define OLD "{'name':'a','securityContext':{'privileged':true}}"
    static const struct {
        const char *old, *now;
        const char *words; /* of the refusal; NULL = accepted */
    } cases[] = {
        { "", "{'name':'d','image':'i','targetContainerName':'c'}", NULL },
        { "", "{'name':'d','securityContext':{'capabilities':{'add':['SYS_PTRACE']}}}",
          "ephemeralContainers[0] 'd': securityContext.capabilities.add has 'SYS_PTRACE', which pods "
          "with a part of a GPU may not have: remove it (kubectl debug --profile=baseline)" },
        { "", "{'name':'d','securityContext':{'privileged':true}}", "securityContext.privileged" },
        { "", "{'name':'d','securityContext':{'seccompProfile':{'type':'Unconfined'}}}",
          "seccompProfile" },
        { "", "{'name':'d','volumeMounts':[{'name':'v','mountPath':'/run/aliquot'}]}",
          "volumeMounts[0].mountPath" },
        { "", "{'name':'d','env':[{'name':'NVIDIA_VISIBLE_DEVICES','value':'all'}]}",
          "set it to void" },
        { OLD, OLD ",{'name':'d','targetContainerName':'c'}", NULL },
        { OLD, OLD ",{'name':'d','securityContext':{'privileged':true}}",
          "ephemeralContainers[1] 'd'" },
        { OLD, "{'name':'a','securityContext':{'privileged':true,'procMount':'Unmasked'}}",
          "ephemeralContainers[0] 'a'" },
    };
    const struct settings s = defaults();

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        json_t *response = review_debug(&s, PART, cases[i].old, cases[i].now);
        const char *said = json_string_value(
            json_object_get(json_object_get(response, "status"), "message"));

        if (json_is_true(json_object_get(response, "allowed")) != !cases[i].words
            || (cases[i].words && !strstr(said, cases[i].words)))
            fail_msg("%s: %s", cases[i].now, said ? said : "accepted");
        assert_null(json_object_get(response, "patch"));
        json_decref(response);
        /* a pod without a part is none of ours */
        response = review_debug(&s, "'resources':{'limits':{'cpu':'1'}}", cases[i].old,
                                cases[i].now);
        assert_true(json_is_true(json_object_get(response, "allowed")));
        json_decref(response);
    }
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
        cmocka_unit_test(test_capabilities),
        cmocka_unit_test(test_rights_of_pods),
        cmocka_unit_test(test_a_pod_with_too_many_containers_is_refused),
        cmocka_unit_test(test_apparmor_by_annotation),
        cmocka_unit_test(test_variables_of_other_objects),
        cmocka_unit_test(test_debug_containers),
        cmocka_unit_test(test_mounts),
        cmocka_unit_test(test_hami),
        cmocka_unit_test(test_quantity),
        cmocka_unit_test(test_no_review),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
